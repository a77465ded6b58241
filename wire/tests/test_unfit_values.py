"""A value that does not fit its field is refused by both forms, at whatever depth it stands."""

from collections.abc import Callable, Iterator
from typing import Any

from klamm.wire import codec, construct_form
from klamm.wire.errors import WireError
from klamm.wire.layout import layout_of
from klamm.wire.schema import Field, Message, Primitive, Struct
from klamm.wire.tests.catalog import every_message
from klamm.wire.tests.samples import full_message

UNFIT: dict[str, list[Any]] = {
    "bool": [],
    "int8": [128, -129, None, "1"],
    "int16": [2**15, -(2**15) - 1, None],
    "int32": [2**31, -(2**31) - 1, None],
    "int64": [2**63, -(2**63) - 1, None],
    "uint16": [2**16, -1, None],
    "uint32": [2**32, -1, None],
    "float64": ["1", None],
    "uuid": ["00000000-0000-0000-0000-000000000000", None],
    "string": ["x" * 2**15, "\ud800", 5],
    "bytes": ["text", 5],
    "records": ["text", 5],
}


def unfit_values(declared: Field, version: int) -> list[Any]:
    if declared.is_array:
        values: list[Any] = [5, [None]]
        if isinstance(declared.kind, Primitive):
            values += [[value] for value in UNFIT[declared.kind.name]]
    elif isinstance(declared.kind, Primitive):
        values = list(UNFIT[declared.kind.name])
        if declared.kind.width:
            return values
    else:
        values = [5]
    return values if version in declared.nullable else [*values, None]


def spoil(struct: Struct, version: int) -> Iterator[str]:
    """Put one unfit value after the other into the struct, and into those inside it."""
    layout = layout_of(type(struct), version)
    for declared in (*layout.plain, *layout.tagged):
        fit = getattr(struct, declared.name)
        for value in unfit_values(declared, version):
            setattr(struct, declared.name, value)
            yield f"{declared.name} = {str(value)[:20]!r}"
        setattr(struct, declared.name, fit)
        if not isinstance(declared.kind, Primitive):
            yield from spoil(fit[0] if declared.is_array else fit, version)


def is_refused(encode: Callable[[Message, int], bytes], message: Message, version: int) -> bool:
    try:
        encode(message, version)
    except WireError:
        return True
    return False


@every_message
def test_both_forms_refuse(cls: type[Message]) -> None:
    version = cls.VERSIONS.last
    message = full_message(cls, version)
    for what in spoil(message, version):
        assert is_refused(codec.encode, message, version), what
        assert is_refused(construct_form.encode, message, version), what
    assert message == full_message(cls, version)
