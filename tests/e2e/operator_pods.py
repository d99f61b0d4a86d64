"""Pods of our Deployment, as the chart creates them: each is a process that our kubelet starts and ends."""

from collections.abc import Callable, Mapping
from signal import SIGTERM
from urllib.parse import urlsplit

from urllib3.exceptions import HTTPError

from controller_manager.check import Pods, check
from ports.transport import Request, Response
from sandbox.dataplane.commands import Command, Surroundings
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.network import Origin
from sandbox.dataplane.processes import Answer, Exit, Launch
from sandbox.dataplane.server_program import ServerProgram
from sandbox.dataplane.transport import DataPlaneTransport
from tests.e2e.operators import Operator

_PORT = 6060
_LOOK_EVERY = 0.1

Start = Callable[[Launch], Operator]
"""Starts the process of a pod, with the rights of its service account."""


def operator_program(start: Start) -> ServerProgram:
    """The program in the controller-manager's container."""
    return ServerProgram(
        name="tidb-operator",
        file="tidb-controller-manager",
        start=lambda launch, deps: OperatorProcess(start(launch), deps),
    )


class OperatorProcess:
    """See `Process`. Its port opens when it is ready, since the kubelet probes again only after a change."""

    concurrent = True

    def __init__(self, operator: Operator, deps: Dependencies) -> None:
        self._operator = operator
        self._clock = deps.clock
        self._ready = False
        self.woken = False

    @property
    def exit(self) -> Exit | None:
        """The exit status."""
        code = self._operator.exit_code
        return None if code is None else Exit(code)

    def step(self) -> float | None:
        """Look whether it has become ready, or has ended."""
        if self.exit is not None:
            return None
        if not self._ready and self._operator.port:
            self._ready = self._get("/readyz").status == 200
        return self._clock.now() + _LOOK_EVERY

    def rests_until(self) -> float:
        """It becomes ready and ends by itself."""
        return float("-inf")

    def question(self) -> Request | None:
        """It sends requests by itself."""
        return None

    def answered(self, response: object) -> None:
        """It has sent no request."""

    def listens(self, port: int) -> bool:
        """Metrics and health."""
        return port == _PORT and self._ready

    def handle(self, port: int, request: Request) -> Answer:
        """A page of the process."""
        return Answer(self._get(urlsplit(request.url).path))

    def stop(self) -> None:
        """SIGTERM."""
        self._operator.signal(SIGTERM)

    def kill(self, code: int = 137) -> None:
        """End at once."""
        self._operator.kill()
        self._operator.wait()

    def _get(self, path: str) -> Response:
        try:
            status, text = self._operator.page(path)
        except HTTPError:
            # it has just ended, or is about to
            return Response(503, {}, b"")
        return Response(status, {}, text.encode())


def _check(surroundings: Surroundings) -> int:
    """`tidb-controller-manager-check` in the pod of `helm test`, with the sandbox's names and network."""
    address, leases = surroundings.launch.command[1:]
    host, port = address.split(":")
    origin, network = Origin.of(surroundings.launch), surroundings.deps.network
    pods = Pods(
        host,
        int(port),
        lambda name: surroundings.reach(lambda: network.addresses(name, origin)),
        DataPlaneTransport(network, origin),
    )
    return check(
        pods,
        leases=int(leases.removeprefix("--leases=")),
        within=60.0,
        clock=surroundings.clock,
        pause=surroundings.wait,
        say=surroundings.say,
    )


CHECK: Mapping[str, Command] = {"tidb-controller-manager-check": _check}
