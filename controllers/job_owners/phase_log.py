"""How an object that Jobs carry out goes on, in the log: each phase once, with how long the one before has lasted.

Pods write phases, too, so that they are looked at where the object is synced. What was before the process began, and
the first phase, which comes with a Job, are no news; trouble that the operator itself finds is told with its cause.
"""

from dataclasses import dataclass

import structlog

from kube.objects import Object

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class PhaseLog:
    """The phase that one object was last seen in, and since when, in monotonic seconds."""

    phase: str | None = None
    since: float = 0.0

    def look(self, owner: Object, now: float, *, is_told: bool = False) -> None:
        """Tell the phase if it is another one and not told otherwise."""
        phase = (owner.decode().get("status") or {}).get("phase") or ""
        if phase == self.phase:
            return
        if self.phase and not is_told:
            seconds = round(now - self.since, 1)
            _log.info("phase changed", kind=owner.kind, phase=phase, before=self.phase, seconds=seconds)
        self.phase, self.since = phase, now
