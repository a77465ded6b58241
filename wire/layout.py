"""How a declaration lies on the wire in one version; what both forms are built from."""

from typing import NamedTuple

from klamm.wire.schema import Field, Kind, Primitive, Struct

# What the two-byte length of old versions can say holds for compact strings too.
STRING_BYTES_MAX = 0x7FFF


class Layout(NamedTuple):
    """The fields of one struct in one version.

    Attributes:
        plain: fields in the body, in order.
        tagged: fields in the tagged section, by ascending tag.
        absent: fields that this version lacks; they take their default when read.
        misplaced_tags: tags that belong to fields which this version lacks or does not tag.
            Kafka refuses these, while it skips tags that it has never heard of.
    """

    plain: tuple[Field, ...]
    tagged: tuple[Field, ...]
    absent: tuple[Field, ...]
    misplaced_tags: tuple[int, ...]


def layout_of(cls: type[Struct], version: int) -> Layout:
    """Sort the fields of a struct by where they stand in this version of its message."""
    plain: list[Field] = []
    tagged: list[Field] = []
    absent: list[Field] = []
    misplaced: list[int] = []
    for declared in cls.FIELDS:
        is_present = version in declared.versions
        if is_present and version in declared.tagged:
            tagged.append(declared)
            continue
        (plain if is_present else absent).append(declared)
        if declared.tag is not None:
            misplaced.append(declared.tag)
    tagged.sort(key=lambda declared: declared.tag or 0)
    return Layout(tuple(plain), tuple(tagged), tuple(absent), tuple(misplaced))


def is_compact(declared: Field, version: int, flexible: bool) -> bool:
    """Tell whether the length of this field is a varint; client_id in the header never is."""
    return flexible and version in declared.flexible


def has_records(cls: type[Struct]) -> bool:
    """Tell whether a struct holds a records field, at whatever depth."""
    return any(
        declared.kind.name == "records"
        if isinstance(declared.kind, Primitive)
        else has_records(declared.kind)
        for declared in cls.FIELDS
    )


def width_of_length(kind: Kind, is_array: bool, compact: bool) -> int:
    """Give the least bytes of a length prefix."""
    if compact:
        return 1
    return 2 if isinstance(kind, Primitive) and kind.name == "string" and not is_array else 4


def least_width(kind: Kind, version: int, flexible: bool) -> int:
    """Give the least bytes that one array item of this kind can take."""
    if isinstance(kind, Primitive):
        return kind.width or width_of_length(kind, False, flexible)
    width = 1 if flexible else 0
    for declared in layout_of(kind, version).plain:
        compact = is_compact(declared, version, flexible)
        if declared.is_array:
            width += width_of_length(declared.kind, True, compact)
        elif isinstance(declared.kind, Primitive):
            width += declared.kind.width or width_of_length(declared.kind, False, compact)
        elif version in declared.nullable:
            width += 1
        else:
            width += least_width(declared.kind, version, flexible)
    # An item without any bytes cannot be allowed to be repeated without end.
    return max(width, 1)
