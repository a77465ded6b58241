"""What the writers of decoders and encoders share: lines, names, and the pending run."""

import struct
from typing import Any

from klamm.wire.schema import Message


class SourceWriter:
    """Collects the source of one function and the objects that it names.

    With `in_steps` the function is a generator that yields before each item of an array, so that
    whoever runs it can let others have their turn.
    """

    def __init__(
        self, cls: type[Message], version: int, names: dict[str, Any], in_steps: bool
    ) -> None:
        self.cls = cls
        self.version = version
        self.title = f"{cls.__name__} v{version}"
        self.flexible = version in cls.FLEXIBLE
        self.in_steps = in_steps
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

    def begin_steps(self) -> None:
        """Make the function a generator, if it is to be one, even if no array is in it."""
        if self.in_steps:
            self.line("yield")

    def begin_loop(self, head: str) -> None:
        """Add the head of a loop over the items of an array, and indent for its body."""
        self.line(head)
        self.indent += 1
        self.begin_steps()

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

    def begin_function(self) -> tuple[list[str], int, bool]:
        """Set aside what is being written, to write a function of its own first."""
        outer = self.lines, self.indent, self.in_steps
        # What it reads or writes is a tagged section: short, where there is any.
        self.lines, self.indent, self.in_steps = [], 0, False
        return outer

    def end_function(self, outer: tuple[list[str], int, bool]) -> None:
        """Put the function in front and go on where begin_function broke off."""
        self.functions.append("\n".join(self.lines))
        self.lines, self.indent, self.in_steps = outer
