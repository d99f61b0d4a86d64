"""Commands that do their work and end, e.g. the clients in the pods of Jobs: ordinary blocking code.

Each runs in lock-step with the world (`sandbox.lock_step`): while it waits or sends a request, the world continues. A
killed command cannot even clean up, because all its ways to the outside are closed.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar

from ports.clock import Clock
from ports.stopping import Stop
from ports.transport import ByteStream, Request, Response, Transport
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.pd.clients import find_pd
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.processes import Answer, Disk, Exit, Launch, TlsSettings, not_found
from sandbox.dataplane.sql import SqlNetwork
from sandbox.lock_step import Ended, LockStep
from sandbox.waiting_clock import WaitingClock

_T = TypeVar("_T")

_KILLED = 137


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment of a command. Waiting on its clock lets the world continue; SIGTERM sets `stop`.

    `say` prints; `disk` returns the volume of an identity, e.g. of a bucket of the sandbox.
    """

    launch: Launch
    deps: Dependencies
    kubernetes: Transport
    sql: SqlNetwork
    clock: Clock
    stop: Stop
    say: Callable[[str], None]
    disk: Callable[[str], Disk]
    reach: "Reach"

    def wait(self, seconds: float) -> None:
        """Let the world continue for some seconds. Raises Ended once the command was killed."""
        condition = threading.Condition()
        with condition:
            self.clock.wait(condition, seconds)

    def pd(self, endpoints: str, tls: TlsSettings | None = None) -> PdCluster | None:
        """The PD cluster behind addresses if it has a reachable leader; takes some time.

        `tls` is the command's side of TLS.
        """
        return self.reach(lambda: find_pd(endpoints, replace(self.launch, tls=tls), self.deps))


class Reach(Protocol):
    """Performs an external call of a command, which takes time. Raises Ended once the command was killed."""

    def __call__(self, work: Callable[[], _T]) -> _T:
        """Perform the call."""


Command = Callable[[Surroundings], int | Exit]
"""The work of a command; returns its exit code or end. The arguments are the launch's."""


class CommandProcess:
    """The process of a command. `go_on` runs its work, outside of the data plane's lock."""

    def __init__(
        self,
        launch: Launch,
        command: Command,
        deps: Dependencies,
        *,
        kubernetes: Transport,
        sql: SqlNetwork,
        disk: Callable[[str], Disk],
    ) -> None:
        self.exit: Exit | None = None
        self.woken = False
        self.printed: list[str] = []
        """The printed text; a reader takes it away."""
        self.due = deps.clock.now()
        """When the command continues."""
        self._deps = deps
        self._stop = Stop()
        self._command = command
        self._pod = f"{launch.namespace}/{launch.pod}"
        self._calls = 0
        """The number of external calls."""
        self._life = LockStep(f"command in {launch.namespace}/{launch.pod}", self._work)
        self._surroundings = Surroundings(
            launch=launch,
            deps=deps,
            kubernetes=_Kubernetes(kubernetes, self._reach),
            sql=sql,
            clock=WaitingClock(deps.clock, self._wait),
            stop=self._stop,
            say=self._say,
            disk=disk,
            reach=self._reach,
        )

    def go_on(self) -> None:
        """Run the command until it waits; unwind it if it was killed."""
        if self.exit is not None:
            self._life.end()
        else:
            self._life.resume()

    def step(self) -> float | None:
        """Do nothing: `go_on` does the work."""
        return None

    def rests_until(self) -> float:
        """The time of the next step: now, if there is printed text to take."""
        return float("-inf")

    def question(self) -> Request | None:
        return None

    def answered(self, response: Response | None) -> None: ...

    def listens(self, port: int) -> bool:  # noqa: ARG002
        """Accept no connection."""
        return False

    def handle(self, port: int, request: Request) -> Answer:  # noqa: ARG002
        return Answer(not_found())

    def stop(self) -> None:
        """SIGTERM."""
        self._stop.set()
        self.due = self._deps.clock.now()

    def kill(self, code: int = _KILLED) -> None:
        """End at once."""
        self._life.ending = True
        self.exit = self.exit or Exit(code)

    def _work(self) -> None:
        try:
            code = self._command(self._surroundings)
        except Ended:
            raise
        except Exception as error:
            # the boundary of a foreign program: it crashes, the world continues
            self._say(f"{type(error).__name__}: {error}")
            code = 1
        if self.exit is None:
            self.exit = code if isinstance(code, Exit) else Exit(code)

    def _say(self, line: str) -> None:
        self.printed.append(f"{line}\n")

    def _reach(self, work: Callable[[], _T]) -> _T:
        self._wait(self._deps.timings.command_call)
        done = work()
        self._calls += 1
        self._end_where_told()
        return done

    def _end_where_told(self) -> None:
        """A fault: end right after this call. Raises Ended."""
        for glob, number in list(self._deps.last_calls.items()):
            if number == self._calls and fnmatchcase(self._pod, glob):
                del self._deps.last_calls[glob]
                self.kill()
                raise Ended

    def _wait(self, seconds: float) -> None:
        """Let the world continue for some seconds, or until SIGTERM. Raises Ended."""
        if self._life.ending:
            raise Ended
        # a thread of the command itself runs outside the clock
        if self._life.is_here:
            self.due = self._deps.clock.now() + seconds
            self._life.yield_control()


class _Kubernetes:
    """The API server as a command reaches it."""

    def __init__(self, transport: Transport, reach: Reach) -> None:
        self._transport = transport
        self._reach = reach

    def request(self, request: Request) -> Response:
        return self._reach(lambda: self._transport.request(request))

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return self._reach(lambda: self._transport.stream(request, idle_timeout))
