"""What surrounds every sync (`controllers.frame`)."""

from ports.asking import asker
from ports.clock import FakeClock
from ports.transport import ByteStream, Request, Response, Transport
from rehearsal.operator import Operator
from tests.operator_world import OperatorWorld, sample


class _Askers:
    """The namespaces that are charged for the long answers of servers."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.found: list[str] = []

    def request(self, request: Request) -> Response:
        self.found.append(asker())
        return self._transport.request(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return self._transport.stream(request, idle_timeout)


def test_each_request_of_a_sync_is_charged_to_the_namespace_of_its_object(clock: FakeClock) -> None:
    world = OperatorWorld(clock=clock)
    world.apply(sample("basic"))
    world.run_until_ready()
    made: list[_Askers] = []

    def asking(transport: Transport) -> Transport:
        made.append(_Askers(transport))
        return made[-1]

    other = Operator(world.world, world.clock, 2, dataplane=asking)
    world.world.settle()
    other.work()
    world.stop()
    assert {"default"} == {namespace for each in made for namespace in each.found}
