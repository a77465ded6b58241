"""What the writers of decoders and encoders share: lines, names, and the pending run."""

import struct
from typing import Any

from klamm.wire.schema import Message


class SourceWriter:
    """Collects the source of one function and the objects that it names."""

    def __init__(self, cls: type[Message], version: int, names: dict[str, Any]) -> None:
        self.cls = cls
        self.version = version
        self.title = f"{cls.__name__} v{version}"
        self.flexible = version in cls.FLEXIBLE
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.names = dict(names)
        self.indent = 0
        # Fixed-width values that wait to be read or written at one go: struct code, expression.
        self.run: list[tuple[str, str]] = []
        self._named: dict[tuple[str, int], str] = {}

    def line(self, text: str) -> None:
        """Add a line at the present indentation."""
        self.lines.append("    " * self.indent + text)

    def name(self, prefix: str, value: object) -> str:
        """Give a global name for an object, the same for the same prefix and object."""
        name = self._named.get((prefix, id(value)))
        if name is None:
            name = f"{prefix}{len(self._named)}"
            self._named[prefix, id(value)] = name
            self.names[name] = value
        return name

    def struct_function(self, codes: str, function: str) -> str:
        """Give the name of a bound pack or unpack_from for these struct codes."""
        name = f"{function}_{codes.replace('?', 'Z')}"
        if name not in self.names:
            self.names[name] = getattr(struct.Struct(">" + codes), function)
        return name

    def begin_function(self) -> tuple[list[str], int]:
        """Set aside what is being written, to write a function of its own first."""
        outer = self.lines, self.indent
        self.lines, self.indent = [], 0
        return outer

    def end_function(self, outer: tuple[list[str], int]) -> None:
        """Put the function in front and go on where begin_function broke off."""
        self.functions.append("\n".join(self.lines))
        self.lines, self.indent = outer
