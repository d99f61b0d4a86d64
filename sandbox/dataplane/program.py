"""Programs that the world is given by name, e.g. discovery, and unknown programs, which just run."""

from collections.abc import Callable, Mapping

import structlog

from ports.clock import Clock
from ports.transport import Credentials, Request, Response, Transport
from sandbox.dataplane.processes import Answer, Exit, Launch, TlsSettings

_log = structlog.get_logger(__name__)

Handler = Callable[[Request], Response]

Network = Callable[[Credentials | None], Transport]
"""The data plane as a pod reaches it, with a certificate or none."""

Factory = Callable[[Mapping[str, str], Transport, Network, Clock], Handler]
"""Creates a program from: environment, the Kubernetes API for its pod's identity, the data plane's network,
the clock.
"""

_KILLED = 143
_DISCOVERY_PORTS = frozenset({10261})
_DISCOVERY_TLS = "/var/lib/discovery-tls"


def tls_of_discovery(launch: Launch) -> TlsSettings | None:
    """The TLS of a discovery service (objects.md 9.4); None for any other program."""
    if launch.env.get("DISCOVERY_MTLS_ENABLED") != "true":
        return None
    ca = launch.file(f"{_DISCOVERY_TLS}/ca.crt") or ""
    return TlsSettings(ca, f"{_DISCOVERY_TLS}/tls.crt", f"{_DISCOVERY_TLS}/tls.key", _DISCOVERY_PORTS)


class Task:
    """An unknown program in a pod that ends: it works for a while, and ends."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._due = clock.now() + seconds
        self.exit: Exit | None = None
        self.woken = False

    def step(self) -> float | None:
        """End when its time has passed."""
        if self.exit is None and self._clock.now() >= self._due:
            self.exit = Exit(0)
        return None if self.exit is not None else self._due

    def rests_until(self) -> float:
        return self._due

    def question(self) -> Request | None:
        return None

    def answered(self, response: Response | None) -> None: ...

    def listens(self, port: int) -> bool:  # noqa: ARG002
        """Accept no connection."""
        return False

    def handle(self, port: int, request: Request) -> Answer:  # noqa: ARG002
        return Answer(Response(404, {"content-type": "text/plain"}, b""))

    def stop(self) -> None:
        self.woken, self.exit = True, Exit(_KILLED)

    def kill(self, code: int = _KILLED) -> None:
        self.woken, self.exit = True, Exit(code)


class Program:
    """A process that only answers requests, on the ports that its container declares."""

    concurrent = True

    def __init__(self, launch: Launch, handler: Handler | None) -> None:
        self._ports = launch.ports
        self._handler = handler
        self.exit: Exit | None = None
        self.woken = False

    def step(self) -> float | None:
        return None

    def rests_until(self) -> float:
        return float("inf")

    def question(self) -> Request | None:
        return None

    def answered(self, response: Response | None) -> None: ...

    def listens(self, port: int) -> bool:
        """True if the container declares the port."""
        return port in self._ports

    def handle(self, port: int, request: Request) -> Answer:  # noqa: ARG002
        """The handler's answer; a program without one accepts connections and answers 404."""
        if self._handler is None:
            return Answer(Response(404, {"content-type": "text/plain"}, b""))
        try:
            return Answer(self._handler(request))
        except Exception as error:
            # the boundary of a foreign program: real servers answer 500 as well
            _log.exception("a program failed", url=request.url)
            return Answer(Response(500, {"content-type": "text/plain"}, str(error).encode()))

    def stop(self) -> None:
        self.woken, self.exit = True, Exit(0)

    def kill(self, code: int = _KILLED) -> None:
        self.woken, self.exit = True, Exit(code)
