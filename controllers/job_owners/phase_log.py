"""Log lines about the phases of an object: each phase once, with the duration of the phase before.

Pods write phases as well, so the phase is read in each sync. The phase at the start of the process and the first phase
of a Job are not logged. Trouble that the operator finds is logged elsewhere, with its cause.
"""

from dataclasses import dataclass

import structlog

from kube.objects import Object

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class PhaseLog:
    """The last known phase of one object, and its beginning in monotonic seconds."""

    phase: str | None = None
    since: float = 0.0

    def look(self, owner: Object, now: float, *, is_told: bool = False) -> None:
        """Note the phase; log it if it has changed, unless it `is_told` elsewhere."""
        phase = (owner.decode().get("status") or {}).get("phase") or ""
        if phase == self.phase:
            return
        if self.phase and not is_told:
            seconds = round(now - self.since, 1)
            _log.info("phase changed", kind=owner.kind, phase=phase, before=self.phase, seconds=seconds)
        self.phase, self.since = phase, now
