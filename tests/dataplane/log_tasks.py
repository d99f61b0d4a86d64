"""The etcd of a simulated PD behind its gateway, for tests of log backups."""

from urllib.parse import urlsplit

from dataplane.addresses import Address
from dataplane.etcd import EtcdClient
from ports.clock import Clock
from ports.transport import ByteStream, Request, Response
from sandbox.dataplane.log_backup import LogTask
from sandbox.dataplane.pd.etcd import Etcd, gateway


class EtcdWorld:
    """An etcd that can be made unreachable; `requests` counts the requests."""

    def __init__(self, clock: Clock) -> None:
        self.etcd = Etcd()
        self.clock = clock
        self.client = EtcdClient(self, Address("http://basic-pd.lab:2379"), clock)
        self.answers = True
        self.requests = 0

    def task(self, name: str = "demo") -> LogTask:
        """Add a task."""
        return LogTask(self.etcd, name, self.clock.now)

    def request(self, request: Request) -> Response:
        """Answer from the simulated etcd."""
        self.requests += 1
        answer = (
            gateway(self.etcd, 1, urlsplit(request.url).path, request.body, self.clock.now()) if self.answers else None
        )
        return answer or Response(503, {}, b"no leader")

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        raise NotImplementedError
