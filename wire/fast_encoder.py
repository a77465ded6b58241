"""Writes, for one message in one version, the Python function that encodes it.

The function appends chunks to a list. A run of fixed-width values is one pack; it takes the
length of the next string or array along, as the single byte that a compact length mostly is.
Tagged sections are checked against the defaults in one expression, and written by a function of
their own when something is set. Records are appended as they are and their places noted, so that
a range of a file can go to the socket without passing through here.
"""

import struct
from typing import Any
from uuid import UUID

from klamm.wire import fast_runtime
from klamm.wire.errors import WireError
from klamm.wire.fast_source import SourceWriter
from klamm.wire.layout import is_compact, layout_of
from klamm.wire.schema import Field, Message, Primitive, Struct
from klamm.wire.uvarint import ONE_BYTE, write_uvarint

# What a value of the wrong type, range or spelling raises on its way into bytes.
UNFIT = (struct.error, AttributeError, TypeError, ValueError, OverflowError, WireError)
RUNTIME_NAMES = {
    "ONE_BYTE": ONE_BYTE,
    "UNFIT": UNFIT,
    "WireError": WireError,
    "pack": struct.pack,
    "write_string_length": fast_runtime.write_string_length,
    "write_uvarint": write_uvarint,
}


class EncoderWriter(SourceWriter):
    """Collects the source of one encoder and the objects that it names."""

    def __init__(self, cls: type[Message], version: int, *, in_steps: bool = False) -> None:
        super().__init__(cls, version, RUNTIME_NAMES, in_steps)

    def source(self) -> str:
        """Write `encode(o, parts, cuts)`; cuts collects the places of records in parts.

        In steps it is a generator, and the caller may empty both lists at each yield.
        """
        self.indent = 1
        self.begin_steps()
        self.line("w = parts.append")
        self.line("try:")
        self.indent = 2
        self.write_block(self.cls, "o")
        self.indent = 1
        self.line("except UNFIT as error:")
        self.line(f"    raise WireError(f'{self.title}: {{error}}') from error")
        main = ["def encode(o, parts, cuts):", *self.lines]
        return "\n".join([*self.functions, *main])

    def packed(self, *extra: tuple[str, str]) -> str:
        """Give the expression for the pending run and extra values; empty without any."""
        run = [*self.run, *extra]
        codes = "".join(code for code, _ in run)
        values = [value for _, value in run if value]
        if not values:
            return repr(bytes(len(codes))) if codes else ""
        if codes == "16s":
            return values[0]
        if len(run) == 1 and values[0].lstrip("-").isdigit():
            return repr(struct.pack(f">{codes}", int(values[0])))
        return f"{self.struct_function(codes, 'pack')}({', '.join(values)})"

    def flush(self) -> None:
        packed = self.packed()
        if packed:
            self.line(f"w({packed})")
        self.run.clear()

    def write_struct(self, cls: type[Struct], owner: str) -> None:
        layout = layout_of(cls, self.version)
        for declared in layout.plain:
            self.write_field(declared, owner)
        if not self.flexible:
            return
        if not layout.tagged:
            # The empty tagged section is a zero byte: a pad byte of the run.
            self.run.append(("x", ""))
            return
        self.flush()
        unset = " and ".join(self.is_default(declared, owner) for declared in layout.tagged)
        function = self.write_tags_function(cls, layout.tagged)
        self.line(f"if {unset}:")
        self.line("    w(b'\\0')")
        self.line("else:")
        self.line(f"    {function}({owner}, w)")

    def write_block(self, cls: type[Struct], owner: str) -> None:
        """Write a struct as the whole of an indented block, which must not be empty."""
        before = len(self.lines)
        self.write_struct(cls, owner)
        self.flush()
        if len(self.lines) == before:
            self.line("pass")

    def is_default(self, declared: Field, owner: str) -> str:
        """Give a quick test that may miss an equal default, but never takes another for it."""
        value = f"{owner}.{declared.name}"
        if not declared.is_shareable_default():
            return f"{value} == []" if declared.is_array else "False"
        default = declared.default_value()
        if isinstance(default, (bool, int, str, bytes, float)):
            return f"{value} == {default!r}"
        return f"{value} is {'None' if default is None else self.name('D', default)}"

    def write_field(self, declared: Field, owner: str) -> None:
        value = f"{owner}.{declared.name}"
        compact = is_compact(declared, self.version, self.flexible)
        nullable = self.version in declared.nullable
        kind = declared.kind
        if declared.is_array:
            self.write_array(kind, value, compact, nullable)
        elif not isinstance(kind, Primitive):
            self.write_nested(kind, value, owner, nullable)
        elif kind.name == "uuid":
            # Half the cost of its property `bytes`.
            self.run.append((kind.struct_code, f"{value}.int.to_bytes(16, 'big')"))
        elif kind.width:
            self.run.append((kind.struct_code, value))
        else:
            self.write_sized(kind.name, value, compact, nullable)

    def write_nested(
        self, kind: type[Struct], value: str, owner: str, nullable: bool, null: str = r"\xff"
    ) -> None:
        inner = f"{owner}s"
        self.flush()
        self.line(f"{inner} = {value}")
        if not nullable:
            self.write_struct(kind, inner)
            return
        self.line(f"if {inner} is None:")
        self.line(f"    w(b'{null}')")
        self.line("else:")
        self.indent += 1
        self.line("w(b'\\x01')")
        self.write_struct(kind, inner)
        self.flush()
        self.indent -= 1

    def write_length(self, code: str, compact: bool, writer: str, is_long: bool = False) -> None:
        """Write n as a length behind the pending run; is_long says that it mostly is over 127."""
        if not compact:
            self.line(f"w({self.packed((code, 'n'))})")
            self.run.clear()
            return
        self.line("if n < 128:")
        short = self.packed(("B", "n")) if self.run else "ONE_BYTE[n]"
        self.line(f"    w({short})")
        if is_long and self.run:
            self.line("elif n < 16384:")
            self.line(f"    w({self.packed(('B', 'n & 127 | 128'), ('B', 'n >> 7'))})")
        self.line("else:")
        self.indent += 1
        self.flush()
        self.line(f"w({writer}(n))")
        self.indent -= 1

    def write_sized(self, kind: str, value: str, compact: bool, nullable: bool) -> None:
        is_string = kind == "string"
        is_records = kind == "records"
        code = "h" if is_string else "i"
        encoded = ".encode()" if is_string else ""
        if nullable:
            self.line(f"s = {value}")
            self.line("if s is None:")
            self.line(f"    w({self.packed(fixed_length(code, -1, compact))})")
            self.line("else:")
            self.indent += 1
            value = "s"
        if encoded or not nullable:
            self.line(f"s = {value}{encoded}")
        self.line(f"n = len(s){' + 1' if compact else ''}")
        writer = "write_string_length" if is_string else "write_uvarint"
        self.write_length(code, compact, writer, is_long=is_records)
        if is_records:
            self.line(f"if n > {1 if compact else 0}:")
            self.line("    cuts.append(len(parts))")
            self.line("    w(s)")
        else:
            self.line("w(s)")
        if nullable:
            self.indent -= 1

    def write_array(self, kind: Any, value: str, compact: bool, nullable: bool) -> None:
        items = f"a{self.indent}"
        self.line(f"{items} = {value}")
        if isinstance(kind, Primitive) and kind.width and kind.name != "uuid" and not nullable:
            self.write_numbers(kind.struct_code, items, compact)
            return
        length = f"len({items}){' + 1' if compact else ''}"
        if nullable:
            length = f"{0 if compact else -1} if {items} is None else {length}"
        self.line(f"n = {length}")
        self.write_length("i", compact, "write_uvarint")
        if not isinstance(kind, Primitive):
            item = f"o{self.indent}"
            self.begin_loop(f"for {item} in {items}{' or ()' if nullable else ''}:")
            self.write_block(kind, item)
            self.indent -= 1
            return
        self.line(f"if {items}:")
        self.indent += 1
        if kind.name == "uuid":
            self.line(f"w(b''.join([u.bytes for u in {items}]))")
        elif kind.width:
            self.line(f"w(pack(f'>{{len({items})}}{kind.struct_code}', *{items}))")
        else:
            self.begin_loop(f"for s in {items}:")
            if kind.name == "string":
                self.line("s = s.encode()")
            self.line(f"n = len(s){' + 1' if compact else ''}")
            writer = "write_string_length" if kind.name == "string" else "write_uvarint"
            self.write_length("h" if kind.name == "string" else "i", compact, writer)
            self.line("w(s)")
            self.indent -= 1
        self.indent -= 1

    def write_numbers(self, code: str, items: str, compact: bool) -> None:
        """Lists of one are common (the replicas of a partition of a single broker), and so are
        empty ones: each is a single pack."""
        self.line(f"if len({items}) == 1:")
        only = self.packed(fixed_length("i", 1, compact), (code, f"{items}[0]"))
        self.line(f"    w({only})")
        self.line(f"elif not {items}:")
        self.line(f"    w({self.packed(fixed_length('i', 0, compact))})")
        self.line("else:")
        self.indent += 1
        self.line(f"n = len({items}){' + 1' if compact else ''}")
        self.write_length("i", compact, "write_uvarint")
        self.line(f"w(pack(f'>{{len({items})}}{code}', *{items}))")
        self.indent -= 1

    def write_tags_function(self, cls: type[Struct], tagged: tuple[Field, ...]) -> str:
        """Write a function apart for a tagged section in which something is set."""
        function = self.name("tags", cls)
        outer = self.begin_function()
        self.line(f"def {function}(o, out):")
        self.indent = 1
        self.line("tags = []")
        for declared in tagged:
            self.line(f"if {self.is_set(declared)}:")
            self.indent = 2
            self.write_tagged(declared, write_uvarint(declared.tag or 0))
            self.indent = 1
        self.line("out(ONE_BYTE[len(tags)] + b''.join(tags))")
        self.end_function(outer)
        return function

    def is_set(self, declared: Field) -> str:
        value = f"o.{declared.name}"
        default = declared.default_value()
        if isinstance(default, UUID):
            # To compare two of them is a call of Python.
            return f"{value}.int != {default.int}"
        return f"{value} != {self.name('D', default)}"

    def write_tagged(self, declared: Field, tag: bytes) -> None:
        kind = declared.kind
        if isinstance(kind, Primitive) and kind.width and not declared.is_array:
            self.write_field(declared, "o")
            self.line(f"tags.append({tag + write_uvarint(kind.width)!r} + {self.packed()})")
            self.run.clear()
            return
        self.line("parts = []")
        self.line("w = parts.append")
        if declared.is_array or isinstance(kind, Primitive):
            self.write_field(declared, "o")
        else:
            nullable = self.version in declared.nullable
            self.write_nested(kind, f"o.{declared.name}", "o", nullable, null=r"\x00")
        self.flush()
        self.line("body = b''.join(parts)")
        self.line(f"tags.append({tag!r} + write_uvarint(len(body)) + body)")


def fixed_length(code: str, length: int, compact: bool) -> tuple[str, str]:
    """A length that is known beforehand, as a value of a run; -1 is that of null."""
    if not compact:
        return code, str(length)
    return ("B", str(length + 1)) if length >= 0 else ("x", "")
