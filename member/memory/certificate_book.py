"""The last findings about the certificates of all clusters, without the certificates and keys themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final


@dataclass(frozen=True, slots=True)
class Finding:
    """One Secret: when its certificates are valid, and `trouble`, a sentence, if they can never be used.

    `key` names the entry of the Secret whose certificate ends first.
    """

    trouble: str = ""
    begins: datetime | None = None
    ends: datetime | None = None
    key: str = ""


@dataclass(slots=True)
class _Page:
    read_at: float
    changes: int
    findings: Mapping[str, Finding]
    reported: str = ""


@dataclass(slots=True)
class CertificateBook:
    """The findings of this process, by cluster and Secret.

    Only the worker of a cluster writes its page; threads such as the one of the metrics may read it meanwhile.
    """

    LOOK_AGAIN: Final = 300.0
    """Seconds until Secrets without trouble are read again."""

    LOOK_AGAIN_AT_TROUBLE: Final = 10.0
    """Seconds until Secrets are read again if one has trouble."""

    _pages: dict[str, _Page] = field(default_factory=dict)

    def is_due(self, cluster: str, secrets: frozenset[str], now: float, every: float, *, changes: int) -> bool:
        """True if the Secrets of a cluster should be read: `every` seconds, and after each change.

        `changes` is the number of changes so far (`kube.secret_reads`).
        """
        page = self._pages.get(cluster)
        if page is None or page.findings.keys() != secrets or page.changes != changes:
            return True
        return now - page.read_at >= every

    def note(self, cluster: str, findings: Mapping[str, Finding], now: float, *, changes: int) -> None:
        """Record the findings, and the number of changes before the Secrets were read."""
        before = self._pages.get(cluster)
        self._pages[cluster] = _Page(now, changes, findings, before.reported if before else "")

    def findings(self, cluster: str) -> Mapping[str, Finding]:
        """The last findings by the name of the Secret; empty before the first reading."""
        page = self._pages.get(cluster)
        return page.findings if page else {}

    def is_news(self, cluster: str, reason: str) -> bool:
        """True if `reason` differs from the one of the last call, which it replaces."""
        page = self._pages.get(cluster)
        if page is None or page.reported == reason:
            return False
        page.reported = reason
        return True

    def forget(self, cluster: str) -> None:
        """Forget a cluster that was deleted or uses no certificates."""
        self._pages.pop(cluster, None)
