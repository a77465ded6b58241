"""Writes, for one message in one version, the Python function that decodes it.

The function is plain code without interpretation: nested structs and arrays are inlined, runs of
fixed-width fields are one unpack each, and such a run takes the length prefix behind it (or the
first byte of a varint) along. Two things keep it short. Lengths are not compared with the bytes
left, because the position only grows: reading on past the end raises, slices past the end are
cut, and one check at the end finds both. And whatever builtin exception a bad byte causes becomes
a WireError at the end of the function. Only counts are checked at once, since they allocate.
"""

import struct

from klamm.wire import fast_runtime
from klamm.wire.errors import WireError
from klamm.wire.fast_source import SourceWriter
from klamm.wire.layout import has_records, is_compact, layout_of, least_width
from klamm.wire.schema import Field, Message, Primitive, Struct
from klamm.wire.uvarint import read_uvarint

# Refusals are caught too, so that every error says which message it was.
MALFORMED = (IndexError, struct.error, ValueError, OverflowError, WireError)
RUNTIME_NAMES = {
    "MALFORMED": MALFORMED,
    "WireError": WireError,
    "known_uuids": fast_runtime.known_uuids,
    "malformed": fast_runtime.malformed,
    "new": object.__new__,
    "read_string_length": fast_runtime.read_string_length,
    "read_uvarint": read_uvarint,
    "refuse_budget": fast_runtime.refuse_budget,
    "refuse_count": fast_runtime.refuse_count,
    "refuse_length": fast_runtime.refuse_length,
    "refuse_null": fast_runtime.refuse_null,
    "refuse_tag": fast_runtime.refuse_tag,
    "refuse_tag_count": fast_runtime.refuse_tag_count,
    "refuse_tag_size": fast_runtime.refuse_tag_size,
    "skip_tags": fast_runtime.skip_tags,
    "unpack_from": struct.unpack_from,
}


class DecoderWriter(SourceWriter):
    """Collects the source of one decoder and the objects that it names."""

    def __init__(self, cls: type[Message], version: int, *, in_steps: bool = False) -> None:
        super().__init__(cls, version, RUNTIME_NAMES, in_steps)
        self.has_records = has_records(cls)

    def source(self) -> str:
        """Write `decode(d, p, limits) -> (message, end)`; in steps a generator returns these."""
        self.indent = 1
        self.begin_steps()
        if self.has_records:
            self.line("v = memoryview(d)")
        else:
            self.line("if d.__class__ is not bytes:")
            self.line("    d = bytes(d)")
        self.line("e = len(d)")
        self.line("b = limits.array_items_max")
        self.line("try:")
        self.indent = 2
        self.write_struct(self.cls, "o")
        self.indent = 1
        self.line("except MALFORMED as error:")
        self.line(f"    raise malformed('{self.title}', error) from error")
        self.line("if p > e:")
        self.line(f"    raise WireError('{self.title} ends early')")
        self.line("return o, p")
        main = ["def decode(d, p, limits):", *self.lines]
        return "\n".join([*self.functions, *main])

    def write_struct(self, cls: type[Struct], target: str) -> None:
        """Write code that makes a struct and fills it from p on."""
        layout = layout_of(cls, self.version)
        self.line(f"{target} = new({self.name('C', cls)})")
        for declared in (*layout.absent, *layout.tagged):
            self.line(f"{target}.{declared.name} = {self.default(declared)}")
        for declared in layout.plain:
            self.write_field(declared, target)
        if self.flexible:
            self.run.append(("B", "t"))
            self.flush()
            self.line("if t:")
            if layout.tagged:
                function = self.write_tags_function(cls, layout.tagged, layout.misplaced_tags)
                self.line(f"    p, b = {function}(d, e, p, t, b, {target}, limits)")
            else:
                self.line(f"    p = skip_tags(d, p, t, limits, {layout.misplaced_tags!r})")
        else:
            self.flush()

    def default(self, declared: Field) -> str:
        if not declared.is_shareable_default():
            if declared.is_array:
                return "[]"
            return f"{self.name('C', declared.kind)}()"
        value = declared.default_value()
        if value is None or isinstance(value, (bool, int, str, bytes)):
            return repr(value)
        return self.name("D", value)

    def flush(self) -> None:
        """Write the pending run of fixed-width values as one unpack."""
        if not self.run:
            return
        run, self.run = self.run, []
        codes = "".join(code for code, _ in run)
        if codes == "B":
            self.line(f"{run[0][1]} = d[p]")
            self.line("p += 1")
            return
        # A UUID arrives as its bytes and is put in place right behind.
        places = [f"u{i}" if code == "16s" else target for i, (code, target) in enumerate(run)]
        comma = "," if len(places) == 1 else ""
        unpack = self.struct_function(codes, "unpack_from")
        self.line(f"{', '.join(places)}{comma} = {unpack}(d, p)")
        self.line(f"p += {struct.calcsize('>' + codes)}")
        for place, (code, target) in zip(places, run, strict=True):
            if code == "16s":
                self.line(f"{target} = known_uuids[{place}]")

    def write_field(self, declared: Field, owner: str) -> None:
        target = f"{owner}.{declared.name}"
        compact = is_compact(declared, self.version, self.flexible)
        nullable = self.version in declared.nullable
        if declared.is_array:
            self.write_array(declared, target, compact, nullable)
        elif not isinstance(declared.kind, Primitive):
            self.write_nested(declared.kind, target, owner, nullable)
        elif declared.kind.width:
            self.run.append((declared.kind.struct_code, target))
        else:
            self.write_sized(declared.kind.name, declared.name, target, compact, nullable)

    def write_nested(
        self, kind: type[Struct], target: str, owner: str, nullable: bool, is_tagged: bool = False
    ) -> None:
        inner = f"{owner}s"
        if nullable:
            # Kafka writes 1 or -1 in front, and reads every negative byte as null. In a tagged
            # section it writes a varint, 1 or 0.
            condition = self.write_length("b", is_tagged, "read_uvarint")
            self.line(f"if {condition}:")
            self.indent += 1
        else:
            self.flush()
        self.write_struct(kind, inner)
        self.line(f"{target} = {inner}")
        if nullable:
            self.indent -= 1
            self.line("else:")
            self.line(f"    {target} = None")

    def write_length(self, code: str, compact: bool, reader: str) -> str:
        """Write code that reads a length or marker into n; give the condition for "not null"."""
        if not compact:
            self.run.append((code, "n"))
            self.flush()
            return "n >= 0"
        self.run.append(("B", "n"))
        self.flush()
        self.line("if n > 127:")
        self.line(f"    n, p = {reader}(d, p - 1)")
        return "n"

    def write_sized(
        self, kind: str, name: str, target: str, compact: bool, nullable: bool, item: bool = False
    ) -> None:
        """Write code that reads a string, bytes or records; target may be an append call."""
        is_string = kind == "string"
        reader = "read_string_length" if is_string else "read_uvarint"
        condition = self.write_length("h" if is_string else "i", compact, reader)
        self.line(f"if {condition}:")
        self.line("    q = p + n - 1" if compact else "    q = p + n")
        if is_string:
            value = "str(d[p:q], 'utf-8')" if self.has_records else "d[p:q].decode()"
        elif kind == "records":
            value = "v[p:q]"
        else:
            value = "bytes(d[p:q])" if self.has_records else "d[p:q]"
        self.line(f"    {target}({value})" if item else f"    {target} = {value}")
        self.line("    p = q")
        self.write_otherwise(name, f"{target} = None", compact, nullable)

    def write_otherwise(self, name: str, when_null: str, compact: bool, nullable: bool) -> None:
        """Write what happens when a length says null, or nonsense."""
        if compact:
            self.line("else:")
            self.line(f"    {when_null}" if nullable else f"    refuse_null('{name}')")
            return
        if nullable:
            self.line("elif n == -1:")
            self.line(f"    {when_null}")
        self.line("else:")
        self.line(f"    refuse_length('{name}', n)")

    def write_array(self, declared: Field, target: str, compact: bool, nullable: bool) -> None:
        condition = self.write_length("i", compact, "read_uvarint")
        width = least_width(declared.kind, self.version, self.flexible)
        items = f"a{self.indent}"
        self.line(f"if {condition}:")
        self.indent += 1
        if compact:
            self.line("n -= 1")
        self.line(f"{target} = {items} = []")
        self.line("if n:")
        self.indent += 1
        self.line(f"if n * {width} > e - p:")
        self.line(f"    refuse_count('{declared.name}', n)")
        self.line("b -= n")
        self.line("if b < 0:")
        self.line(f"    refuse_budget('{declared.name}')")
        self.write_items(declared, items, compact)
        self.indent -= 2
        self.write_otherwise(declared.name, f"{target} = None", compact, nullable)

    def write_items(self, declared: Field, items: str, compact: bool) -> None:
        kind = declared.kind
        if not isinstance(kind, Primitive):
            self.begin_loop("for _ in range(n):")
            inner = f"o{self.indent}"
            self.write_struct(kind, inner)
            self.line(f"{items}.append({inner})")
            self.indent -= 1
        elif kind.name == "uuid":
            self.line("q = p + 16 * n")
            raw = "d[i:i + 16]" if not self.has_records else "bytes(d[i:i + 16])"
            self.begin_loop("for i in range(p, q, 16):")
            self.line(f"{items}.append(known_uuids[{raw}])")
            self.indent -= 1
            self.line("p = q")
        elif kind.width:
            self.line(f"{items} += unpack_from(f'>{{n}}{kind.struct_code}', d, p)")
            self.line(f"p += {kind.width} * n")
        else:
            self.begin_loop("for _ in range(n):")
            self.write_sized(kind.name, declared.name, f"{items}.append", compact, False, item=True)
            self.indent -= 1

    def write_tags_function(
        self, cls: type[Struct], tagged: tuple[Field, ...], misplaced: tuple[int, ...]
    ) -> str:
        """Write a function apart for a tagged section with known fields: it is seldom called."""
        function = self.name("tags", cls)
        outer = self.begin_function()
        self.line(f"def {function}(d, e, p, t, b, o, limits):")
        self.indent = 1
        if self.has_records:
            self.line("v = memoryview(d)")
        self.line("if t > 127:")
        self.line("    t, p = read_uvarint(d, p - 1)")
        self.line("if t > limits.tagged_fields_max:")
        self.line("    refuse_tag_count(t)")
        self.line("for _ in range(t):")
        self.indent = 2
        self.line("tag, p = read_uvarint(d, p)")
        self.line("n, p = read_uvarint(d, p)")
        self.line("end = p + n")
        for number, declared in enumerate(tagged):
            self.line(f"{'if' if number == 0 else 'elif'} tag == {declared.tag}:")
            self.indent = 3
            kind = declared.kind
            if declared.is_array or isinstance(kind, Primitive):
                self.write_field(declared, "o")
            else:
                nullable = self.version in declared.nullable
                self.write_nested(kind, f"o.{declared.name}", "o", nullable, is_tagged=True)
            self.flush()
            self.line("if p != end:")
            self.line("    refuse_tag_size(tag)")
            self.indent = 2
        if misplaced:
            self.line(f"elif tag in {misplaced!r}:")
            self.line("    refuse_tag(tag)")
        self.line("else:")
        self.line("    p = end")
        self.indent = 1
        self.line("return p, b")
        self.end_function(outer)
        return function
