"""Impersonation headers, as for `kubectl --as`.

The API server checks that the operator's own identity may impersonate, then authorises and records each request as the
other identity's.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kube.credentials import ConfigError

Headers = tuple[tuple[str, str], ...]
"""Header names may repeat."""

_ESCAPED = re.compile(r"[^!#$&'*+.^_`|~0-9A-Za-z-]")
_UNSENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The identity that a kubeconfig's user acts as: `as`, `as-uid`, `as-groups`, `as-user-extra`. Empty: no
    impersonation.
    """

    user: str = ""
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def headers(self, source: str) -> Headers:
        """The headers of each request. Raises ConfigError, which names `source`."""
        if not self.user and (self.uid or self.groups or self.extra):
            raise ConfigError(source, "as-uid, as-groups and as-user-extra need `as`, the user that they belong to")
        headers = tuple((name, _sent(value)) for name, value in self._described() if value)
        if any(_UNSENDABLE.search(value) for _, value in headers):
            raise ConfigError(source, "as, as-uid, as-groups or as-user-extra holds characters that no header has")
        return headers

    def _described(self) -> Iterator[tuple[str, str]]:
        yield "Impersonate-User", self.user
        yield "Impersonate-Uid", self.uid
        for group in self.groups:
            yield "Impersonate-Group", group
        for key, values in self.extra.items():
            for value in values:
                yield f"Impersonate-Extra-{_escaped(key)}", value


def _escaped(key: str) -> str:
    """A key as part of a header name: other characters are percent-encoded, as in client-go."""
    return _ESCAPED.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode(errors="replace")), key)


def _sent(value: str) -> str:
    """UTF-8 bytes in the form of Latin-1 text, because the HTTP library encodes headers as Latin-1."""
    return value.encode(errors="replace").decode("latin-1")
