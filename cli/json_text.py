"""JSON as YAML can read it: YAML knows no tabs between tokens, no escapes of UTF-16, and no objects in a row."""

import json
import re
from collections.abc import Iterator

_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|.)")
_BLANKS = re.compile(r"[ \t\r\n]*")


def as_yaml(content: bytes) -> bytes:
    """JSON objects, one or several, as YAML that means the same and has it in the same lines; all else as it is."""
    try:
        text = content.decode("utf-8-sig")
        objects = list(_objects(text)) if text.lstrip().startswith("{") else []
    except (ValueError, RecursionError):
        return content
    # no text of JSON holds a tab that is not escaped
    whole = [_ESCAPE.sub(_whole, each.replace("\t", " ")) for each in objects]
    return "".join(whole).encode() if whole else content


def _objects(text: str) -> Iterator[str]:
    """Each object with the blanks around it, the later ones marked as documents. Raises ValueError, RecursionError."""
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    begin = _blanks(text, 0)
    lead = text[:begin]
    while begin < len(text):
        _, end = decoder.raw_decode(text, begin)
        after = _blanks(text, end)
        yield lead + text[begin:after]
        begin, lead = after, "--- " if text[end:after].endswith("\n") else "\n--- "


def _blanks(text: str, at: int) -> int:
    """Where blanks end."""
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _whole(escape: re.Match[str]) -> str:
    """Both halves of a pair as one character; other escapes mean the same in YAML."""
    return str(json.loads(f'"{escape[0]}"')) if len(escape[0]) > 2 else escape[0]
