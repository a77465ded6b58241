"""Java's .properties syntax."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.broker.config.properties import parse_properties
from klamm.broker.tests.config.refusals import refusal


@pytest.mark.parametrize(
    "line",
    ["a=b", "a:b", "a b", "a = b", "a\t:\tb", "a\fb", "  a=b", "a   =   b", "a\\\n=b", "a=\\\n  b"],
)
def test_separators(line: str) -> None:
    assert parse_properties(line) == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("\n \n\t\n", {}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("a==b", {"a": "=b"}),
        ("a = = b", {"a": "= b"}),
        ("a b=c", {"a": "b=c"}),
        ("a=b ", {"a": "b "}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\rb=2\r\nc=3", {"a": "1", "b": "2", "c": "3"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
    ],
)
def test_lines(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize("text", ["#a=b", "!a=b", "  # a=b", "\t!a=b", "#a=b\\\n"])
def test_comments(text: str) -> None:
    assert parse_properties(text + "\nc=d") == {"c": "d"}


def test_a_comment_sign_inside_a_value_is_no_comment() -> None:
    assert parse_properties("a=b#c!d\ne\\\n#f") == {"a": "b#c!d", "e#f": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b\\\nc", "bc"),
        ("a=b\\\n   \t c", "bc"),
        ("a=b\\\n\n", "b"),
        ("a=b\\\r\nc\\\r\nd", "bcd"),
        ("a=b\\", "b"),
        ("a=b\\\\", "b\\"),
        ("a=b\\\\\\\nc", "b\\c"),
        ("a=one,\\\n  two,\\\n  three", "one,two,three"),
    ],
)
def test_continued_lines(text: str, expected: str) -> None:
    assert parse_properties(text) == {"a": expected}


def test_an_even_number_of_backslashes_does_not_continue() -> None:
    assert parse_properties("a=b\\\\\nc=d") == {"a": "b\\", "c": "d"}


@pytest.mark.parametrize(
    ("escaped", "meant"),
    [
        (r"\t\n\r\f", "\t\n\r\f"),
        (r"\\", "\\"),
        (r"\:\=\ \#\!", ":= #!"),
        (r"C\:\\data", r"C:\data"),
        (r"\q", "q"),
        (r"\u00e4\u00C4", "äÄ"),
        (r"\u20ac5", "€5"),
        (r"\ud83d\ude00", "\N{GRINNING FACE}"),
        (r"\ud83d.", "\N{REPLACEMENT CHARACTER}."),
        ("ä€", "ä€"),
    ],
)
def test_escapes(escaped: str, meant: str) -> None:
    assert parse_properties(f"a={escaped}") == {"a": meant}


def test_escapes_in_a_key() -> None:
    assert parse_properties(r"a\ b\=c\u0020d = e") == {"a b=c d": "e"}


@pytest.mark.parametrize("broken", [r"\u", r"\u12", r"\u12g4", r"\u-123", r"\u 123"])
def test_a_broken_unicode_escape_names_its_line(broken: str) -> None:
    text = refusal(parse_properties, f"# first\na=b\nc={broken}\nd=e")
    assert text is not None
    assert text.startswith("line 3: \\u must be followed by four hexadecimal digits; write ")


def _escaped(text: str) -> str:
    """A text with every character written as its code, so that nothing in it means anything."""
    units = text.encode("utf-16-be", "surrogatepass")
    return "".join(
        f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True)
    )


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_escaped_comes_back(properties: dict[str, str]) -> None:
    text = "\n".join(f"{_escaped(key)}={_escaped(value)}" for key, value in properties.items())
    assert parse_properties(text) == properties


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    refused = refusal(parse_properties, text)
    assert refused is None or "\\u" in text
