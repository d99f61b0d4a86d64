"""Keeps the credentials of the environment out of logs and conditions, and what a terminal would obey out of logs."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus

import msgspec
from structlog.typing import EventDict

from ports.foreign_text import printable

REDACTED = "[redacted]"

_SECRET_NAME = re.compile(r"SECRET|PASSWORD|TOKEN|STORAGE_KEY|ACCESS_KEY|JSON_KEY|PRIVATE|SAS", re.IGNORECASE)
_SHORTEST = 4
"""Characters; a shorter value would match everywhere."""

_IN_TEXT = re.compile(r"(?i)((?:sig|password|sas-token|secret-access-key|account-key)=)[^\s\"'&,;]+")


class Secrets:
    """The texts to redact."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        values = {value for name, value in environ.items() if _SECRET_NAME.search(name) and not name.endswith("_FILE")}
        values |= {inner for value in values for inner in _inside(value)}
        values -= {"true", "false"}
        spelled = {spelling for value in values for spelling in (value, quote(value, safe=""), quote_plus(value))}
        # longest first, because one may be part of another
        self._values = sorted((each for each in spelled if len(each) >= _SHORTEST), key=len, reverse=True)

    def __repr__(self) -> str:
        """The number of secrets."""
        return f"Secrets({len(self._values)})"

    def cut_from(self, text: str) -> str:
        """`text` without secrets, and without credentials in URLs and options."""
        for value in self._values:
            text = text.replace(value, REDACTED)
        return _IN_TEXT.sub(rf"\1{REDACTED}", text)

    def redact(self, _logger: object, _method: str, event: EventDict) -> EventDict:
        """Redact a log event, as a structlog processor."""
        return {name: self._redacted(value) for name, value in event.items()}

    def _redacted(self, value: object) -> object:
        match value:
            case str():
                return printable(self.cut_from(value), lines=True)
            case list() | tuple():
                return [self._redacted(each) for each in value]
            case None | bool() | int() | float():
                return value
            case _:
                return printable(self.cut_from(repr(value)))


def _inside(value: str) -> Iterator[str]:
    """The texts in a key that is a JSON document, e.g. Google's, by line as in a log."""
    if not value.lstrip().startswith("{"):
        return
    with contextlib.suppress(msgspec.DecodeError):
        document = msgspec.json.decode(value)
        for name, inner in document.items():
            if isinstance(inner, str) and _SECRET_NAME.search(name):
                yield inner
                yield from inner.splitlines()
