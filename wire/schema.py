"""The vocabulary in which messages are declared, once each for all their versions.

A message is a class: one annotated attribute per field, in wire order, with its type and, where
they differ from the message's own, the versions in which it exists, may be null or is tagged.
The classes are slotted, mutable and built by keyword; every field has a default. What the bytes
look like follows from the declaration alone: see construct_form.py (the specification) and
codec.py (the same, fast).

Broker start-up imports dozens of declarations, so making a class is kept to a few microseconds:
the constructor is compiled when a class is first called, not when it is declared.
"""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeAlias, dataclass_transform
from uuid import UUID

Records: TypeAlias = bytes | memoryview
# Encoding takes anything with a length here (a range of a file, say) and passes it through.
RecordsSlice: TypeAlias = Any

ZERO_UUID = UUID(int=0)


class Versions(NamedTuple):
    """A closed range of versions; last is OPEN_END where the range has no end."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


OPEN_END = 32767
ALL_VERSIONS = Versions(0, OPEN_END)
NO_VERSIONS = Versions(0, -1)
_known_ranges = {"": ALL_VERSIONS, "none": NO_VERSIONS}


def versions_of(text: str) -> Versions:
    """Read "3", "3+", "3-13" or "none"; the empty text means all versions."""
    known = _known_ranges.get(text)
    if known is None:
        first, dash, last = text.partition("-")
        if dash:
            known = Versions(int(first), int(last))
        elif text.endswith("+"):
            known = Versions(int(text[:-1]), OPEN_END)
        else:
            known = Versions(int(text), int(text))
        _known_ranges[text] = known
    return known


class Primitive:
    """A type that is not a struct; struct_code is empty where the width varies."""

    __slots__ = ("default", "name", "struct_code", "width")

    def __init__(self, name: str, default: object, struct_code: str = "", width: int = 0) -> None:
        self.name = name
        self.default = default
        self.struct_code = struct_code
        self.width = width

    def __repr__(self) -> str:
        return self.name


bool_ = Primitive("bool", False, "?", 1)
int8 = Primitive("int8", 0, "b", 1)
int16 = Primitive("int16", 0, "h", 2)
int32 = Primitive("int32", 0, "i", 4)
int64 = Primitive("int64", 0, "q", 8)
uint16 = Primitive("uint16", 0, "H", 2)
uint32 = Primitive("uint32", 0, "I", 4)
float64 = Primitive("float64", 0.0, "d", 8)
uuid = Primitive("uuid", ZERO_UUID, "16s", 16)
string = Primitive("string", "")
bytes_ = Primitive("bytes", b"")
# Kafka's own default for records is null, whatever the field says about nullability.
records = Primitive("records", None)

Kind: TypeAlias = "Primitive | type[Struct]"


class Field:
    """One declared field: where it stands, in which versions, and in what form."""

    __slots__ = ("default", "flexible", "is_array", "kind", "name", "nullable", "tag", "tagged",
                 "versions")  # fmt: skip

    def __init__(
        self,
        kind: Kind,
        is_array: bool,
        versions: str,
        nullable: str,
        tag: int | None,
        tagged: str,
        default: object,
        flexible: str,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.is_array = is_array
        self.versions = versions_of(versions)
        self.nullable = versions_of(nullable)
        self.tag = tag
        self.tagged = NO_VERSIONS if tag is None else versions_of(tagged or versions)
        self.default = default
        self.flexible = versions_of(flexible)

    def __repr__(self) -> str:
        return f"<field {self.name}: {'[]' if self.is_array else ''}{self.kind!r}>"

    def is_shareable_default(self) -> bool:
        """Tell whether one default value may serve all instances, because none can change it."""
        if self.is_array:
            return self.default is None
        if self.default is UNSET and not isinstance(self.kind, Primitive):
            return all(inner.is_shareable_default() for inner in self.kind.FIELDS)
        return True

    def default_value(self) -> Any:
        """Give the default; a fresh one where it could be changed."""
        if self.default is not UNSET:
            return self.default
        if self.is_array:
            return []
        if isinstance(self.kind, Primitive):
            return self.kind.default
        if self.is_shareable_default():
            return unchangeable_default(self.kind)
        return self.kind()


UNSET: Any = type("Unset", (), {"__repr__": lambda self: "UNSET"})()


def field(
    kind: Kind,
    versions: str = "",
    *,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str = "",
    default: object = UNSET,
    flexible: str = "",
) -> Any:
    """Declare a field.

    Args:
        kind: a primitive of this module or a Struct class.
        versions: the versions of the message in which the field exists.
        nullable: those in which it may be null.
        tag: its number in the tagged section, for those versions in which it is tagged.
        tagged: the versions in which it is tagged; all of its versions where this is left out.
        default: its value where nothing was given or read.
        flexible: the flexible versions in which its length is compact, if not all of them.
    """
    return Field(kind, False, versions, nullable, tag, tagged, default, flexible)


def array(
    kind: Kind,
    versions: str = "",
    *,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str = "",
    default: object = UNSET,
) -> Any:
    """Declare a field that holds a list of a primitive or of a Struct; see field."""
    return Field(kind, True, versions, nullable, tag, tagged, default, "")


@dataclass_transform(kw_only_default=True)
class _Declaration(type):
    """Turns the Field attributes of a class body into slots."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], body: dict[str, Any], **options: Any
    ) -> "_Declaration":
        fields = []
        for attribute, value in body.items():
            if isinstance(value, Field):
                value.name = attribute
                fields.append(value)
        for declared in fields:
            del body[declared.name]
        body["__slots__"] = tuple([declared.name for declared in fields])
        if "FIELDS" not in body:
            body["FIELDS"] = tuple(fields)
        return super().__new__(mcs, name, bases, body, **options)


class Struct(metaclass=_Declaration):
    """A group of fields inside a message."""

    FIELDS: ClassVar[tuple[Field, ...]] = ()

    def __init__(self, **values: Any) -> None:
        # The first call of each class lands here; from then on its own constructor is in place.
        declared = type(self)
        constructor = _compile_constructor(declared)
        type.__setattr__(declared, "__init__", constructor)
        constructor(self, **values)

    def __eq__(self, other: object) -> bool:
        # An unchangeable default is an instance of a subclass, and equal to an ordinary one.
        if not (isinstance(other, type(self)) or isinstance(self, type(other))):
            return NotImplemented
        return all(
            getattr(self, declared.name) == getattr(other, declared.name)
            for declared in self.FIELDS
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(
            f"{declared.name}={getattr(self, declared.name)!r}" for declared in self.FIELDS
        )
        return f"{type(self).__name__}({values})"


class Message(Struct):
    """A whole request, response, header or stored record."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[Versions] = NO_VERSIONS
    FLEXIBLE: ClassVar[Versions] = NO_VERSIONS

    def __init_subclass__(
        cls, *, api_key: int = -1, versions: str = "none", flexible: str = "none"
    ) -> None:
        cls.API_KEY = api_key
        cls.VERSIONS = versions_of(versions)
        cls.FLEXIBLE = versions_of(flexible)


def _compile_constructor(cls: type[Struct]) -> Callable[..., None]:
    """Compile `__init__(self, *, field=default, ...)`; about 100 µs, once for each class used."""
    parameters = []
    lines = []
    names: dict[str, Any] = {"UNSET": UNSET}
    for number, declared in enumerate(cls.FIELDS):
        name = declared.name
        if declared.is_shareable_default():
            names[f"default_{number}"] = declared.default_value()
            parameters.append(f"{name}=default_{number}")
            lines.append(f"    self.{name} = {name}")
        else:
            fresh = "[]"
            if not declared.is_array:
                names[f"kind_{number}"] = declared.kind
                fresh = f"kind_{number}()"
            parameters.append(f"{name}=UNSET")
            lines.append(f"    self.{name} = {fresh} if {name} is UNSET else {name}")
    signature = ", ".join(["self", *(["*", *parameters] if parameters else [])])
    exec(f"def __init__({signature}):\n" + "\n".join(lines or ["    pass"]), names)
    constructor: Callable[..., None] = names["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    return constructor


_unchangeable: dict[type[Struct], Struct] = {}


def unchangeable_default(cls: type[Struct]) -> Struct:
    """Give the one shared all-defaults instance of a struct; it refuses assignment.

    A partition of a Fetch response has three tagged structs that are almost never set. Sharing
    their default saves building three objects and lets the encoder skip them by identity.
    """
    shared = _unchangeable.get(cls)
    if shared is None:
        body = {
            "FIELDS": cls.FIELDS,
            "__module__": cls.__module__,
            "__setattr__": _refuse_change,
            "__deepcopy__": lambda self, memo: self,
        }
        twin: Any = _Declaration(cls.__name__, (cls,), body)
        shared = object.__new__(twin)
        for declared in cls.FIELDS:
            object.__setattr__(shared, declared.name, declared.default_value())
        _unchangeable[cls] = shared
    assert shared is not None
    return shared


def _refuse_change(self: Struct, name: str, value: object) -> None:
    raise AttributeError(
        f"this {type(self).__name__} is the shared default: assign a new one to the message"
    )
