"""The server without a network: requests are function calls."""

from ports.transport import ByteStream, Request, Response
from sandbox.apiserver.server import ApiServer


class InProcessTransport:
    """Requests of one user, answered in the calling thread. Thread-safe."""

    def __init__(self, server: ApiServer, user: str = "system:admin") -> None:
        self._server = server
        self._user = user

    def request(self, request: Request) -> Response:
        """Send and read the whole answer. Raises ConnectionLost for a fault that breaks the connection."""
        return self._server.handle(self._user, request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Open a watch, or any other answer as a stream. Raises ConnectionLost."""
        return self._server.open_stream(self._user, request, idle_timeout)
