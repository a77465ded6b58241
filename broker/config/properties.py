"""Java's .properties syntax, which is how server.properties is written.

A line is `key=value`, `key: value` or `key value`; `#` or `!` begins a comment line; a backslash at
the end of a line continues it, and elsewhere escapes the next character. The last of several lines
with the same key counts.
"""

from collections.abc import Iterator

from klamm.broker.config.errors import ConfigError

_SPACE = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Returns the keys and values of a properties text.

    Raises:
        ConfigError: A `\\u` escape is not followed by four hexadecimal digits.
    """
    properties: dict[str, str] = {}
    for number, line in _logical_lines(text):
        end = _key_end(line)
        key = _unescape(line[:end], number)
        rest = line[end:].lstrip(_SPACE)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_SPACE)
        properties[key] = _unescape(rest, number)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yields each line with its number, comments dropped and continued lines joined."""
    begun: list[str] = []
    first = 0
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for number, natural in enumerate(lines, 1):
        line = natural.lstrip(_SPACE)
        if not begun:
            if not line or line[0] in "#!":
                continue
            first = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            begun.append(line[:-1])
            continue
        yield first, "".join([*begun, line])
        begun = []
    if begun:
        yield first, "".join(begun)


def _key_end(line: str) -> int:
    escaped = False
    for position, character in enumerate(line):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in "=:" or character in _SPACE:
            return position
    return len(line)


def _unescape(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    characters: list[str] = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character != "\\" or position == len(text):
            characters.append(character)
            continue
        escaped = text[position]
        position += 1
        if escaped != "u":
            characters.append(_ESCAPES.get(escaped, escaped))
            continue
        digits = text[position : position + 4]
        if len(digits) < 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
            raise ConfigError(
                f"line {number}: \\u must be followed by four hexadecimal digits; "
                "write a single backslash as \\\\"
            )
        characters.append(chr(int(digits, 16)))
        position += 4
    # Java writes a character beyond the first 65,536 as two escapes.
    units = "".join(characters).encode("utf-16-be", "surrogatepass")
    return units.decode("utf-16-be", "replace")
