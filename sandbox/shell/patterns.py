"""Patterns of the shell, as regular expressions."""

import re
from collections.abc import Iterable

_CLASSES = {"[:space:]": r"\s", "[:digit:]": r"\d", "[:alpha:]": "A-Za-z", "[:alnum:]": "A-Za-z0-9"}


def glob(parts: Iterable[tuple[str, bool]]) -> str:
    """The regular expression for a pattern whose parts are quoted or not."""
    return "".join(re.escape(text) if quoted else _unquoted(text) for text, quoted in parts)


def matches(pattern: str, text: str) -> bool:
    """True if the whole text matches."""
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def trimmed(text: str, pattern: str, operator: str) -> str:
    """`${text%pattern}` and its variants: the text without the shortest or longest match at one end."""
    places: Iterable[int] = range(len(text) + 1)
    at_start = operator.startswith("#")
    if (operator in ("#", "##")) is (len(operator) == 2):
        places = reversed(list(places))
    for place in places:
        if matches(pattern, text[:place] if at_start else text[place:]):
            return text[place:] if at_start else text[:place]
    return text


def _unquoted(text: str) -> str:
    found, position = [], 0
    while position < len(text):
        character = text[position]
        end = _bracket_end(text, position) if character == "[" else -1
        if end > 0:
            found.append(_bracket(text[position + 1 : end]))
            position = end + 1
            continue
        found.append({"*": ".*", "?": "."}.get(character) or re.escape(character))
        position += 1
    return "".join(found)


def _bracket_end(text: str, begin: int) -> int:
    """The end of a bracket expression, or -1."""
    position = begin + 2 if text[begin + 1 : begin + 2] in ("!", "^") else begin + 1
    position += text[position : position + 1] == "]"
    while position < len(text) and text[position] != "]":
        position = text.find(":]", position) + 2 if text.startswith("[:", position) else position + 1
    return position if position < len(text) else -1


def _bracket(inner: str) -> str:
    negated = inner[:1] in ("!", "^")
    inner = inner[1:] if negated else inner
    for name, meant in _CLASSES.items():
        inner = inner.replace(name, meant)
    return f"[{'^' if negated else ''}{inner.replace('[', chr(92) + '[')}]"
