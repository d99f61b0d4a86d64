"""JSON in a form that YAML can read: without tabs between tokens, UTF-16 escapes, and concatenated objects."""

import json
import re
from collections.abc import Iterator

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|.)")
_BLANKS = re.compile(r"[ \t\r\n]*")


def as_yaml(content: bytes) -> bytes:
    """One or several JSON objects as equivalent YAML with the same lines; any other content unchanged."""
    try:
        text = content.decode("utf-8-sig")
        objects = list(_objects(text)) if text.lstrip().startswith("{") else []
    except (ValueError, RecursionError):
        return content
    # a JSON text contains no unescaped tab
    whole = [_ESCAPE.sub(_whole, each.replace("\t", " ")) for each in objects]
    return "".join(whole).encode() if whole else content


def _objects(text: str) -> Iterator[str]:
    """Each object with surrounding blanks, later ones marked as documents. Raises ValueError, RecursionError."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    begin = _blanks(text, 0)
    lead = text[:begin]
    while begin < len(text):
        _, end = decoder.raw_decode(text, begin)
        after = _blanks(text, end)
        yield lead + text[begin:after]
        begin, lead = after, "--- " if text[end:after].endswith("\n") else "\n--- "


def _blanks(text: str, at: int) -> int:
    """The end of a run of blanks."""
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _whole(escape: re.Match[str]) -> str:
    """A surrogate pair as one character; other escapes mean the same in YAML."""
    return str(json.loads(f'"{escape[0]}"')) if len(escape[0]) > 2 else escape[0]
