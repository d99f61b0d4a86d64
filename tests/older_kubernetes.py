"""A Kubernetes that reports another version than the sandbox's."""

import json
from dataclasses import dataclass

from ports.transport import ByteStream, Request, Response, Transport


@dataclass
class Older:
    """A Kubernetes that reports another version."""

    inner: Transport
    minor: str

    def request(self, request: Request) -> Response:
        """Answer as the other Kubernetes does."""
        if request.url.partition("?")[0].endswith("/version"):
            return Response(200, {}, json.dumps({"major": "1", "minor": self.minor}).encode())
        return self.inner.request(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Answer as the inner one."""
        return self.inner.stream(request, idle_timeout)
