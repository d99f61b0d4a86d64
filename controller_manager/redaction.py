"""Redaction of the log: values under secret names are omitted, and texts that look like secrets are cut."""

import math
import re
from collections.abc import Mapping
from typing import Any

from structlog.typing import EventDict, WrappedLogger

from ports.foreign_text import printable

REDACTED = "[redacted]"

_SECRET_NAME = re.compile(
    r"token|passw|pwd|authorization|cookie|(private|api|client|access|account)[_-]?key", re.IGNORECASE
)

_LONGEST = 32_768
"""Characters of a text in a log line."""

# all threads wait while a pattern is matched, also with a text of 1 MB that a user wrote. The time may not grow with
# the square of the length: a pattern begins only where the text before it cannot belong to the match.
_SECRET_TEXTS = (
    # a private key
    (re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END|\Z)", re.DOTALL), rf"\1{REDACTED}\2"),
    # a JSON web token, e.g. a service account's
    (re.compile(r"(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]*"), REDACTED),
    # the Authorization header and its value
    (re.compile(r"(authorization[\"']?\s*[=:]\s*[\"']?\w+)\s+[\w.~+/=-]+", re.IGNORECASE), rf"\1 {REDACTED}"),
    (re.compile(r"\b(bearer)\s+[\w.~+/=-]{16,}", re.IGNORECASE), rf"\1 {REDACTED}"),
    # https://user:password@host
    (re.compile(r"(://[^/\s:@]*:)[^@/\s]+@"), rf"\1{REDACTED}@"),
    # user:password@tcp(host), the format of Go's MySQL drivers
    (re.compile(r"(?<![^@/\s])([^@/\s:]*:)[^@/\s]+(?=@(?:tcp|unix)\()"), rf"\1{REDACTED}"),
    # password=..., "token": "...", the keys and signatures of object storage
    (
        re.compile(
            r"((?:token|password|passwd|pwd|(?:access|account)[_-]?key|[?&]sig|signature)[\"']?\s*[=:]\s*[\"']?)"
            r"(?!\[redacted)[^\s\"'&,;}]+",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
)


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """A structlog processor that removes secrets, and values that JSON cannot represent."""
    return {name: _redacted_field(name, value) for name, value in event.items()}


def _redacted_field(name: object, value: Any) -> Any:
    return REDACTED if value is not None and _is_secret(name) else redacted(value)


def _is_secret(name: object) -> bool:
    return isinstance(name, str) and _SECRET_NAME.search(name) is not None


def redacted(value: Any) -> Any:
    """A value without secrets: under secret names, as the `value` beside a secret `name`, and within texts."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float():
            return value
        case str():
            # stack traces have several lines; JSON does not escape C1 controls and bidirectional marks
            return printable(redact_text(value), lines=True)
        case Mapping():
            is_secret = _is_secret(value.get("name"))
            return {
                str(name): REDACTED if is_secret and name == "value" else _redacted_field(name, inner)
                for name, inner in value.items()
            }
        case list() | tuple() | set() | frozenset():
            return [redacted(inner) for inner in value]
        case _:
            # the renderer would print the repr without redaction
            return redact_text(repr(value))


def redact_text(text: str) -> str:
    """`text` without parts that look like secrets, at most 32,768 characters of it."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text) - _LONGEST} more characters)"
    for pattern, replacement in _SECRET_TEXTS:
        text = pattern.sub(replacement, text)
    return text
