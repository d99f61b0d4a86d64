"""The data plane as a transport in process, the same port that HTTP serves (ports.transport)."""

from ports.transport import ByteStream, Request, Response, TransportError
from sandbox.dataplane.network import Network, Origin


class DataPlaneTransport:
    """Sends requests with absolute URLs into the sandbox's network, as seen from `origin`."""

    def __init__(self, network: Network, origin: Origin | None = None) -> None:
        self._network = network
        self._origin = origin or Origin()

    def request(self, request: Request) -> Response:
        """The answer of the process behind the URL. Raises ConnectionRefused, RequestTimeout."""
        return self._network.deliver(request, self._origin)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:  # noqa: ARG002
        """Raise TransportError: the data plane has no streams."""
        raise TransportError(request.method, request.url, "the sandbox's data plane has no streams")
