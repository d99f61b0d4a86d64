"""Pools of connections to one API server, with the same trust, identity and proxy.

Certificates that another program renews, in files or by a plugin, are used from the next connection on, because the
server rejects an expired one.
"""

import socket
import ssl
import tempfile
import threading
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import urllib3
from urllib3.exceptions import InsecureRequestWarning, LocationParseError
from urllib3.util import Url

from kube.config import ClusterConfig, Tls
from kube.connections import OpenConnections, tracking_pools
from kube.credentials import ConfigError
from ports.clock import Clock
from ports.deadlines import DeadlineTlsSocket
from ports.lazy_log import get_logger
from ports.proxies import PROXY_SCHEMES, is_socks
from ports.socks import PySocksMissing, require_pysocks, through
from ports.tls import verifying_context

_log = get_logger(__name__)

_POOL_SIZE = 100
"""The number of idle connections kept: more than there are workers (PY-5)."""

_CERTIFICATES_AGE = 50.0
"""Seconds after which certificate files are checked for changes, as for tokens (REST-11)."""


class Pools:
    """Provides pools. Thread-safe."""

    def __init__(self, config: ClusterConfig, proxy: str | None, connections: OpenConnections, clock: Clock) -> None:
        """Prepare, without connecting; each new connection is registered in `connections`.

        Raises ConfigError for unusable certificates or an unusable proxy.
        """
        if config.tls.insecure:
            _log.warning("not verifying the API server's certificate", server=config.server, source=config.source)
            urllib3.disable_warnings(InsecureRequestWarning)
        self._config = config
        self._clock = clock
        self._proxy = _parsed(proxy, config) if proxy else None
        self._socks = through(self._proxy.url) if self._proxy and is_socks(self._proxy.url) else None
        self._classes = tracking_pools(connections, self._socks)
        self._lock = threading.Lock()
        self._tls = config.tls
        self._context = self._context_of(config.tls)
        self._looked_at = clock.now()
        self._shared = self._open(_POOL_SIZE)

    def shared(self) -> urllib3.PoolManager:
        """The pool of short requests."""
        with self._lock:
            self._renew()
            return self._shared

    def single(self) -> urllib3.PoolManager:
        """A pool for one connection that is not shared. Connects on first use."""
        with self._lock:
            self._renew()
            return self._open(1)

    def doubt(self) -> None:
        """Check for renewed certificates before the next use: the server has rejected the client's, or the client the
        server's.
        """
        with self._lock:
            self._looked_at = float("-inf")

    def clear(self) -> None:
        """Close idle connections."""
        with self._lock:
            self._shared.clear()

    def _renew(self) -> None:
        now = self._clock.now()
        if self._config.renew is None or now - self._looked_at <= _CERTIFICATES_AGE:
            return
        self._looked_at = now
        try:
            tls = self._config.renew()
            if tls == self._tls:
                return
            context = self._context_of(tls)
        except ConfigError as error:
            # e.g. a new certificate was written, but its key not yet
            _log.warning("keeping the old certificates", problem=str(error))
            return
        self._tls, self._context = tls, context
        former, self._shared = self._shared, self._open(_POOL_SIZE)
        former.clear()
        _log.info("using renewed certificates", source=self._config.source)

    def _context_of(self, tls: Tls) -> ssl.SSLContext | None:
        return ssl_context(tls, self._config.source) if self._config.server.startswith("https:") else None

    def _open(self, size: int) -> urllib3.PoolManager:
        name = self._tls.server_name or None
        settings: dict[str, Any] = {
            "ssl_context": self._context,
            "server_hostname": name,
            "assert_hostname": name,
            "socket_options": _socket_options(),
        }
        manager = self._manager(size, settings)
        manager.pool_classes_by_scheme = self._classes
        return manager

    def _manager(self, size: int, settings: dict[str, Any]) -> urllib3.PoolManager:
        if self._proxy is None or self._socks is not None:
            return urllib3.PoolManager(1, maxsize=size, **settings)
        auth = self._proxy.auth
        return urllib3.ProxyManager(
            self._proxy._replace(auth=None).url,
            1,
            proxy_headers=_authorization(auth) if auth else None,
            maxsize=size,
            **settings,
        )


def _parsed(proxy: str, config: ClusterConfig) -> Url:
    """The parts of a proxy's URL. Raises ConfigError, which does not quote the URL, because it may contain
    a password.
    """
    scheme = config.server.partition(":")[0].upper()
    source = config.source if config.proxy_url else f"{scheme}_PROXY or ALL_PROXY"
    try:
        url = urllib3.util.parse_url(proxy)
    except LocationParseError:
        url = Url()
    if not url.host:
        raise ConfigError(source, "the proxy is no URL such as http://host:3128")
    if url.scheme not in PROXY_SCHEMES:
        raise ConfigError(
            source,
            f"a proxy is http://, https:// or socks5://, not {url.scheme}://; "
            "name another one, or the host of the API server in NO_PROXY",
        )
    if is_socks(proxy):
        try:
            require_pysocks()
        except PySocksMissing as error:
            raise ConfigError(source, str(error)) from error
    return url


def _authorization(auth: str) -> dict[str, str]:
    """The header with a proxy's user and password in UTF-8, as in Go."""
    return urllib3.make_headers(proxy_basic_auth=unquote(auth).encode(errors="replace").decode("latin-1"))


def _socket_options() -> list[tuple[int, int, int]]:
    """REST-12: a dead peer of an idle watch is noticed after at most 30 + 9 * 15 s."""
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 9)):
        if option := getattr(socket, name, None):  # missing on some systems
            options.append((socket.IPPROTO_TCP, option, value))
    return options


def ssl_context(tls: Tls, source: str) -> ssl.SSLContext:
    """A client's context, which verifies the server's name and certificate unless `tls.insecure`.

    Raises ConfigError if a certificate or key cannot be used.
    """
    context = _trusting(tls, source)
    context.sslsocket_class = DeadlineTlsSocket
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate:
        _show_certificate(context, tls, source)
    return context


def _trusting(tls: Tls, source: str) -> ssl.SSLContext:
    try:
        return verifying_context(cadata=tls.ca.decode("ascii") if tls.ca else None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ConfigError(source, f"certificate-authority is not a certificate in PEM form: {error}") from error


def _show_certificate(context: ssl.SSLContext, tls: Tls, source: str) -> None:
    # Python loads keys only from files; this one is private and exists only during the call
    with tempfile.TemporaryDirectory(prefix="client-certificate-") as directory:
        path = Path(directory) / "pair.pem"
        path.touch(mode=0o600)
        path.write_bytes(tls.certificate + b"\n" + tls.key)
        try:
            # an encrypted key fails here; without a password OpenSSL would ask for one at the terminal
            context.load_cert_chain(path, password="")
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            problem = f"client-certificate and client-key cannot be used together: {reason}"
            raise ConfigError(source, problem) from error
