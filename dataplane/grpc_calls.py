"""Unary gRPC calls by grpcio, which only a flush of a log backup needs: without it, such a call fails.

The server is not trusted: its answer has a maximum size, and the call a deadline (docs/security.md). Each call has a
connection of its own, which the threads of grpcio serve.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from ports.foreign_text import shortened
from ports.grpc import UNIMPLEMENTED, CallRefused, PendingCall, UnaryCall
from ports.proxies import is_socks, proxy_for
from ports.transport import ConnectionLost, RequestTimeout

_CANCELLED, _DEADLINE_EXCEEDED, _UNAVAILABLE = 1, 4, 14
_LONGEST_HEAD = 1 << 14
"""The maximum size of an answer's metadata in bytes."""


class GrpcCalls:
    """Begins calls over TCP. Implements `UnaryCalls`."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        """`ports.proxies` finds the proxy in the variables of `environ`."""
        self._environ = environ or {}

    def begin(self, call: UnaryCall) -> PendingCall:
        """See `UnaryCalls`. Raises CallRefused without grpcio, and for a SOCKS proxy, which grpcio does not know."""
        proxy = proxy_for(call.url, self._environ)
        if proxy is not None and is_socks(proxy):
            raise CallRefused(UNIMPLEMENTED, "gRPC goes through http:// proxies only; name the host in NO_PROXY")
        channel = _channel(_grpc(), call, proxy)
        return _Pending(call, channel, channel.unary_unary(call.method).future(call.body, timeout=call.timeout))


class _Pending:
    """A call of grpcio; its connection is closed when it ends."""

    def __init__(self, call: UnaryCall, channel: Any, future: Any) -> None:
        self._call = call
        self._future = future
        future.add_done_callback(lambda _: channel.close())

    def answer(self) -> bytes | None:
        """See `PendingCall`."""
        if not self._future.done():
            return None
        code = self._future.code().value[0]
        if code == 0:
            answer: bytes = self._future.result()
            return answer
        details, url = shortened(self._future.details() or ""), self._call.url + self._call.method
        if code in (_CANCELLED, _DEADLINE_EXCEEDED):
            raise RequestTimeout("gRPC", url, f"no answer within {self._call.timeout:.0f} s")
        if code == _UNAVAILABLE:
            raise ConnectionLost("gRPC", url, details)
        raise CallRefused(code, details)

    def cancel(self) -> None:
        """See `PendingCall`."""
        self._future.cancel()


def _grpc() -> Any:
    try:
        # takes 20 MB of memory, and no other call needs it
        return import_module("grpc")
    except ImportError as error:
        raise CallRefused(UNIMPLEMENTED, "the Python package grpcio is not installed, or cannot be loaded") from error


def _channel(grpc: Any, call: UnaryCall, proxy: str | None) -> Any:
    options: list[tuple[str, object]] = [
        ("grpc.max_receive_message_length", call.longest_answer),
        ("grpc.max_metadata_size", _LONGEST_HEAD),
        ("grpc.absolute_max_metadata_size", _LONGEST_HEAD),
        ("grpc.enable_retries", 0),
        # else calls to the same server, with the same certificates, would share a connection
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", int(proxy is not None)),
    ]
    if proxy is not None:
        options.append(("grpc.http_proxy", proxy))
    target, credentials = urlsplit(call.url).netloc, call.credentials
    if credentials is None:
        return grpc.insecure_channel(target, options)
    own = grpc.ssl_channel_credentials(credentials.ca, credentials.key, credentials.cert)
    return grpc.secure_channel(target, own, options)
