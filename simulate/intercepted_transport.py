"""The operator's two ports as the simulator hands them out: every request passes the engine."""

from collections.abc import Callable

from ports.transport import ByteStream, Request, Response, Transport
from simulate.calls import Port

Exchange = Callable[[Port, Transport, Request], Response]
"""Carries a request, or not. Raises TransportError, Crash."""


class InterceptedTransport:
    """A transport whose requests somebody else carries."""

    def __init__(self, port: Port, transport: Transport, exchange: Exchange) -> None:
        self._port = port
        self._transport = transport
        self._exchange = exchange

    def request(self, request: Request) -> Response:
        """See `Transport`. Raises Crash."""
        return self._exchange(self._port, self._transport, request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        """See `Transport`; the simulated operator opens none."""
        return self._transport.stream(request, idle_timeout)
