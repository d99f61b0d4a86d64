"""The common part of all servers' processes: they work when work is due, and end some time after SIGTERM."""

from ports.transport import Request, Response
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.processes import Exit, Launch


class ServerProcess:
    """A server behind its start script. Subclasses define its work and its end."""

    rests = False
    """True if only its work changes it: before work is due, a step has no effect."""

    def __init__(self, launch: Launch, deps: Dependencies, start: float) -> None:
        """`start` is the seconds before its first work."""
        self._launch = launch
        self._deps = deps
        self.began_at = deps.clock.wall().timestamp()
        """Its start, in seconds since the epoch."""
        self._starts_at = deps.clock.now() + start + launch.slowness
        self._due: float | None = self._starts_at
        """When it works next; None if nothing is due."""
        self._stopping_at: float | None = None
        self.woken = False
        self.exit: Exit | None = None

    def step(self) -> float | None:
        """Work if work is due, end if the end is due; return the next due time."""
        now = self._deps.clock.now()
        if self.exit is not None:
            return None
        if self._stopping_at is not None and now >= self._stopping_at:
            self._finish(now)
            return None
        if self._due is not None and now >= self._due:
            pause = self._work(now)
            self._due = None if pause is None else now + pause
        return self._earliest(self._due, self._stopping_at)

    def rests_until(self) -> float:
        due = self._earliest(self._due, self._stopping_at)
        return due if due is not None and self.rests else float("-inf")

    def question(self) -> Request | None:
        """Return None: servers talk to PD in PD's own protocol, which is not HTTP."""
        return None

    def answered(self, response: Response | None) -> None: ...

    def stop(self) -> None:
        if self._stopping_at is None:
            self._stopping_at = self._deps.clock.now() + self._deps.timings.graceful_stop
            self.woken = True

    def kill(self, code: int = 137) -> None:
        self._end(Exit(code))

    def _work(self, now: float) -> float | None:
        """Do the due work; return the seconds until the next work, or None."""
        raise NotImplementedError

    def _finish(self, now: float) -> None:  # noqa: ARG002  # some take leave of others
        """End in good order."""
        self._end(Exit(0))

    def _end(self, how: Exit) -> None:
        """Record the end."""
        self.woken, self.exit = True, how

    @staticmethod
    def _earliest(one: float | None, other: float | None) -> float | None:
        if one is None or other is None:
            return other if one is None else one
        return min(one, other)
