"""Runs of one kind in which the process ends after a write, or the answer of a write is lost (F1, F3, F4)."""

from collections.abc import Callable, Iterator

from kube.objects import Json
from kube.resources import CONFIG_MAPS, JOBS, PERSISTENT_VOLUME_CLAIMS, SECRETS, SERVICES, STATEFUL_SETS
from ports.transport import ByteStream, ConnectionLost, Request, Response, Transport
from tests.controllers.simple_world import SimpleWorld

MADE = (CONFIG_MAPS, SECRETS, SERVICES, STATEFUL_SETS, JOBS, PERSISTENT_VOLUME_CLAIMS)


class ProcessEnded(BaseException):
    """Raised where the process of the operator ends."""


class Faulty:
    """A transport on which the answer to one write never comes; events do not count."""

    def __init__(self, transport: Transport, number: int, *, ends: bool) -> None:
        self._transport = transport
        self._left = number
        self._ends = ends
        self.hit = False

    def request(self, request: Request) -> Response:
        """Carry a request out, and lose the answer if its turn has come."""
        answer = self._transport.request(request)
        if not request.is_read and "/events" not in request.url:
            self._left -= 1
            if self._left == 0:
                self.hit = True
                raise ProcessEnded if self._ends else ConnectionLost(request.method, request.url, "lost")
        return answer

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """The tests do not use watches."""
        return self._transport.stream(request, idle_timeout)


def end_state(world: SimpleWorld) -> Json:
    """The created objects, without values that differ from run to run, and the status without times."""
    made = {
        f"{resource.kind}/{each.metadata.name}": each.decode().get("spec") or each.decode().get("data")
        for resource in MADE
        for each in world.admin.list_page(resource, "lab").items
    }
    status = {key: value for key, value in world.status().items() if not key.endswith("Time")}
    conditions = [(each["type"], each["status"], each.get("reason")) for each in status.pop("conditions", ())]
    return made | {"status": status, "conditions": conditions}


def faulty_runs(make: Callable[[], SimpleWorld], play: Callable[[SimpleWorld], None], *, ends: bool) -> Iterator[Json]:
    """The end state of a run without a fault, then of one with a fault at each of its writes.

    `play` lets the user do things, and time pass.
    """
    number = 0
    while True:
        world, transports = make(), list[Faulty]()

        def wrap(transport: Transport, number: int = number, made: list[Faulty] = transports) -> Transport:
            made.append(Faulty(transport, number, ends=ends))
            return made[-1]

        world.use(kubernetes=wrap)
        try:
            play(world)
        except ProcessEnded:
            world.restart()
        world.run(90)
        yield end_state(world)
        world.stop()
        if number and not any(each.hit for each in transports):
            return
        number += 1
