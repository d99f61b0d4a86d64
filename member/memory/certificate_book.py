"""What the certificates of all clusters were found to be; never the certificates themselves, nor their keys."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final


@dataclass(frozen=True, slots=True)
class Finding:
    """What there is in a Secret: when it holds, and `trouble`, a sentence, where it cannot be used at any time.

    `key` is that of the Secret whose certificate ends first.
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
    told: str = ""


@dataclass(slots=True)
class CertificateBook:
    """The findings of this process, by cluster and Secret. Safe for use by many threads."""

    LOOK_AGAIN: Final = 300.0
    """Seconds until good Secrets are read again."""

    LOOK_AGAIN_AT_TROUBLE: Final = 10.0
    """Seconds until they are where something is wrong with one."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pages: dict[str, _Page] = field(default_factory=dict)

    def is_due(self, cluster: str, secrets: frozenset[str], now: float, every: float, *, changes: int) -> bool:
        """Whether the Secrets of a cluster should be read: `every` so many seconds, and whenever one has changed.

        `changes` is the number of changes reported so far (`kube.secret_reads`).
        """
        with self._lock:
            page = self._pages.get(cluster)
        if page is None or page.findings.keys() != secrets or page.changes != changes:
            return True
        return now - page.read_at >= every

    def note(self, cluster: str, findings: Mapping[str, Finding], now: float, *, changes: int) -> None:
        """Record what was read, and how many changes had been reported before that."""
        with self._lock:
            before = self._pages.get(cluster)
            self._pages[cluster] = _Page(now, changes, findings, before.told if before else "")

    def findings(self, cluster: str) -> Mapping[str, Finding]:
        """What was found last, by the name of the Secret; empty before the first look."""
        with self._lock:
            page = self._pages.get(cluster)
        return page.findings if page else {}

    def is_news(self, cluster: str, reason: str) -> bool:
        """Whether `reason` was not told last; now it was."""
        with self._lock:
            page = self._pages.get(cluster)
            if page is None or page.told == reason:
                return False
            page.told = reason
            return True

    def forget(self, cluster: str) -> None:
        """A cluster is gone, or uses no certificates any more."""
        with self._lock:
            self._pages.pop(cluster, None)
