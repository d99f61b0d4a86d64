"""The etcd of a simulated PD behind its gateway, for tests of log backups."""

import base64
import json
from urllib.parse import urlsplit

from dataplane.addresses import Address
from dataplane.etcd import EtcdClient
from ports.clock import Clock
from ports.transport import ByteStream, Request, Response
from sandbox.dataplane.log_backup import LogTask
from sandbox.dataplane.pd.etcd import Etcd, gateway


class EtcdWorld:
    """An etcd that can be made unreachable.

    `requests` counts the requests. Keys that begin with `unreadable` get no answer; `refusal` is the text of an error.
    """

    def __init__(self, clock: Clock) -> None:
        self.etcd = Etcd()
        self.clock = clock
        self.client = EtcdClient(self, Address("http://basic-pd.lab:2379"), clock)
        self.answers = True
        self.unreadable: str | None = None
        self.refusal = b"no leader"
        self.requests = 0

    def task(self, name: str = "demo") -> LogTask:
        """Add a task."""
        return LogTask(self.etcd, name, self.clock.now)

    def request(self, request: Request) -> Response:
        """Answer from the simulated etcd."""
        self.requests += 1
        answer = None
        if self.answers and not self._is_unreadable(request.body):
            answer = gateway(self.etcd, 1, urlsplit(request.url).path, request.body, self.clock.now())
        return answer or Response(503, {}, self.refusal)

    def _is_unreadable(self, body: bytes | None) -> bool:
        key = base64.b64decode(json.loads(body or b"{}").get("key") or "").decode()
        return self.unreadable is not None and key.startswith(self.unreadable)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        raise NotImplementedError
