"""The operator's two ports in the simulator: every request passes the engine."""

from collections.abc import Callable

from ports.transport import ByteStream, Request, Response, Transport
from simulate.engine.calls import Port

Exchange = Callable[[Port, Transport, Request], Response]
"""Carries out a request or a fault. Raises TransportError, Crash."""


class InterceptedTransport:
    """A transport that passes requests to an `Exchange`."""

    def __init__(self, port: Port, transport: Transport, exchange: Exchange) -> None:
        self._port = port
        self._transport = transport
        self._exchange = exchange

    def request(self, request: Request) -> Response:
        """Pass the request on. Raises Crash."""
        return self._exchange(self._port, self._transport, request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """Open a stream; the simulated operator opens none."""
        return self._transport.stream(request, idle_timeout)
