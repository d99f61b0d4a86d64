"""Connections through a SOCKS5 proxy, by PySocks (the extra `socks`).

The proxy resolves the names of servers for `socks5://` and `socks5h://` alike, as in Go, and so in kubectl and v1.6:
names of a Kubernetes cluster often mean nothing on this side of the proxy.
"""

import socket
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import unquote, urlsplit

from urllib3.connection import HTTPConnection
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from ports.deadlines import DeadlineReads

_PORT = 1080

_LONGEST_NAME = 127
"""Bytes of a name or a password. PySocks 1.7 writes a longer length in two bytes, which no proxy understands."""


class PySocksMissing(OSError):
    """Raised when a proxy needs PySocks, which is not installed. The message names the extra."""


def require_pysocks() -> None:
    """Raises PySocksMissing."""
    _dialling_socket()


def dial(
    proxy: str, host: str, port: int, timeout: float | None, options: Sequence[Sequence[Any]] = ()
) -> socket.socket:
    """Connect to a server within `timeout` seconds for each address of the proxy. `options` go to setsockopt.

    Raises TimeoutError, PySocksMissing, and OSError with the address of the proxy, but not its password.
    """
    try:
        url = urlsplit(proxy)
        where = url.hostname or "", url.port or _PORT
    except ValueError:
        # the error would quote a part of the password
        raise OSError("the SOCKS proxy is no URL such as socks5://host:1080") from None
    target = host.strip("[]"), port
    login = [unquote(part) for part in (url.username or "", url.password or "")]
    kind = _dialling_socket()
    try:
        if any(len(part.encode()) > _LONGEST_NAME for part in (target[0], *login)):
            raise OSError(f"PySocks sends names and passwords of at most {_LONGEST_NAME} bytes")
        return _first(kind, where, target, login, timeout=timeout, options=options)
    except TimeoutError:
        raise
    except (OSError, UnicodeError) as error:
        cause = getattr(error, "socket_err", None) or error
        if isinstance(cause, TimeoutError):
            raise cause from None
        raise OSError(f"the SOCKS proxy at {where[0]}:{where[1]}: {cause}") from None


def through(proxy: str) -> Callable[[HTTPConnection], socket.socket]:
    """How an HTTP connection dials through `proxy`: the `dial` of `ports.deadlines`."""

    def connected(connection: HTTPConnection) -> socket.socket:
        timeout = connection.timeout if isinstance(connection.timeout, int | float) else None
        try:
            return dial(proxy, connection.host, connection.port, timeout, connection.socket_options or ())
        except TimeoutError as error:
            raise ConnectTimeoutError(connection, f"no connection through the SOCKS proxy in {timeout} s") from error
        except OSError as error:
            raise NewConnectionError(connection, str(error)) from error

    return connected


def _first(
    kind: Any,
    proxy: tuple[str, int],
    target: tuple[str, int],
    login: Sequence[str],
    *,
    timeout: float | None,
    options: Sequence[Sequence[Any]],
) -> socket.socket:
    """A connection through the first address of the proxy that answers. Raises OSError."""
    problem: OSError | None = None
    for family, _, _, _, address in socket.getaddrinfo(*proxy, type=socket.SOCK_STREAM):
        dialling = kind(family)
        try:
            for option in options:
                dialling.setsockopt(*option)
            dialling.set_proxy(kind.version, str(address[0]), proxy[1], True, *login)
            dialling.settimeout(timeout)
            dialling.arm(timeout)
            dialling.connect(target)
            dialling.settimeout(timeout)
        except OSError as error:
            dialling.close()
            problem = error
        except BaseException:
            dialling.close()
            raise
        else:
            connected: socket.socket = dialling
            return connected
    raise problem or OSError("its name has no address")


@cache
def _dialling_socket() -> Any:
    """PySocks' class of sockets, with one deadline for all answers of the proxy. Raises PySocksMissing."""
    try:
        socks: Any = import_module("socks")
    except ImportError as error:
        what = "a SOCKS proxy needs the Python package PySocks (the extra `socks`); install it, or name an HTTP proxy"
        raise PySocksMissing(what) from error

    base: Any = socks.socksocket

    class Dialling(DeadlineReads, base):  # type: ignore[misc]  # PySocks has no types
        version = socks.SOCKS5

    return Dialling
