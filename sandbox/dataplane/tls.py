"""TLS between processes: real OpenSSL handshakes in memory, by the world's clock (objects.md 9).

A handshake takes a millisecond and is deterministic, so its outcome is cached by the content of the certificates.
OpenSSL does not know the world's clock, so the handshake ignores dates, which are compared afterwards.
"""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ports.clock import Clock
from ports.transport import Credentials

_NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which `ssl` does not name."""

_KEPT = 4096
"""The number of cached outcomes; rotated certificates are evicted in time."""

_WRONG_VERSION = "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"
"""The error of a TLS client with a server that does not speak TLS."""

_REFUSED = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {} (_ssl.c:1006)"
_ALERT = "[SSL: {}] {} (_ssl.c:2580)"


@dataclass(frozen=True, slots=True)
class Certificate:
    """One side's PEM files: trusted CA, certificate and key.

    `verifies` checks the peer's certificate, `checks_names` also its name.
    """

    ca: str = ""
    cert: str = ""
    key: str = field(default="", repr=False)
    verifies: bool = True
    checks_names: bool = True

    def checks(self, host: str) -> bool:
        """True if it checks that the peer's certificate covers a host."""
        return bool(host) and self.verifies and self.checks_names

    @classmethod
    def of(cls, credentials: Credentials) -> "Certificate":
        """A certificate with these PEM bytes."""
        parts = (credentials.ca, credentials.cert, credentials.key)
        ca, cert, key = (part.decode("utf-8", "replace") for part in parts)
        return cls(ca, cert, key, checks_names=credentials.checks_names)


NOBODY = Certificate()
"""A client without certificate that trusts no cluster's CA."""

PROVEN = Certificate(ca="proven on a socket of its own")
"""A client whose handshake took place on a real socket."""


@dataclass(frozen=True, slots=True)
class ServerSide:
    """A server's TLS. `demands` requires client certificates; `names` restricts their CN."""

    certificate: Certificate
    demands: bool = True
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Dates:
    """The validity of one side's certificates, in seconds of the Unix clock."""

    begin: float = float("-inf")
    end: float = float("inf")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The outcome of a handshake without dates: the client's error, or empty."""

    error: str = ""
    server: _Dates = _Dates()
    client: _Dates = _Dates()
    client_name: str = ""


_Question = tuple[Certificate, Certificate, bool, str]


class Handshakes:
    """Handshakes between any two sides. The callers hold the data plane's lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._outcomes: dict[_Question, _Outcome] = {}

    def failure(self, client: Certificate | None, server: ServerSide | None, host: str) -> str:
        """Why a client's connection to a server fails, as the client reports it; empty if it succeeds.

        None is a side without TLS. Without `host` the name is not checked.
        """
        if client is PROVEN or (client is None and server is None):
            return ""
        if server is None:
            return _WRONG_VERSION
        if client is None:
            return "the server speaks TLS, the client does not"
        return self._judged(client, server, self._outcome(client, server, host))

    def _judged(self, client: Certificate, server: ServerSide, found: _Outcome) -> str:
        now = self._clock.wall().timestamp()
        if client.verifies and now > found.server.end:
            return _REFUSED.format("certificate has expired")
        if client.verifies and now < found.server.begin:
            return _REFUSED.format("certificate is not yet valid")
        if found.error:
            return found.error
        if server.demands and now > found.client.end:
            return _ALERT.format("SSLV3_ALERT_CERTIFICATE_EXPIRED", "sslv3 alert certificate expired")
        if server.demands and (now < found.client.begin or (server.names and found.client_name not in server.names)):
            return _ALERT.format("SSLV3_ALERT_BAD_CERTIFICATE", "sslv3 alert bad certificate")
        return ""

    def _outcome(self, client: Certificate, server: ServerSide, host: str) -> _Outcome:
        question = (client, server.certificate, server.demands, host)
        outcome = self._outcomes.get(question)
        if outcome is None:
            if len(self._outcomes) >= _KEPT:
                self._outcomes.clear()
            outcome = self._outcomes[question] = _shake_hands(client, server, host)
        return outcome


def unusable(certificate: Certificate) -> str:
    """Why no server could use a certificate, in OpenSSL's words; empty if one could."""
    try:
        server_context(ServerSide(certificate))
    except (ssl.SSLError, ValueError) as error:
        return str(error)
    return ""


def server_context(side: ServerSide) -> ssl.SSLContext:
    """A server's context. Raises ssl.SSLError, ValueError for an invalid certificate."""
    context = _with_certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), side.certificate)
    if side.demands:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_context(certificate: Certificate, host: str) -> ssl.SSLContext:
    """The TLS of a client for a host. Raises SSLError, ValueError for unusable PEM."""
    context = _with_certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)
    context.check_hostname = certificate.checks(host) and not _is_short(host)
    if not certificate.verifies:
        context.verify_mode = ssl.CERT_NONE
    return context


def _with_certificates(context: ssl.SSLContext, own: Certificate) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if own.ca:
        context.load_verify_locations(cadata=own.ca)
    if own.cert:
        with _readable(own.cert) as cert, _readable(own.key) as key:
            context.load_cert_chain(cert, key, password="")
    return context


def _shake_hands(client: Certificate, server: ServerSide, host: str) -> _Outcome:
    try:
        asking, serving = client_context(client, host), server_context(server)
    except (ssl.SSLError, ValueError) as error:
        return _Outcome(str(error))
    for context in (asking, serving):
        context.verify_flags = ssl.VerifyFlags(context.verify_flags | _NO_CHECK_TIME)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = asking.wrap_bio(to_client, to_server, server_hostname=host or None)
    theirs = serving.wrap_bio(to_server, to_client, server_side=True)
    if refused := _talk(ours, theirs):
        return _Outcome(refused)
    seen, shown = ours.getpeercert() or {}, theirs.getpeercert() or {}
    if _is_short(host) and client.checks(host) and not _covers(seen, host):
        return _Outcome(_REFUSED.format(f"Hostname mismatch, certificate is not valid for '{host}'."))
    return _Outcome("", _dates(seen, asking), _dates(shown, serving), _common_name(shown))


def _is_short(host: str) -> bool:
    """True if a name has two labels: OpenSSL accepts no `*` for the first of these, Go does."""
    return host.count(".") == 1


def _covers(shown: Mapping[str, Any], host: str) -> bool:
    names = {value for _, value in shown.get("subjectAltName", ())}
    return not names.isdisjoint({host, f"*.{host.partition('.')[2]}"})


def _talk(client: ssl.SSLObject, server: ssl.SSLObject) -> str:
    """Complete the handshake; return the client's error, or empty."""
    refused = ""
    # at most three flights; in TLS 1.3 a client learns of a rejected certificate only when it reads
    for _ in range(4):
        if said := _step(client):
            return said
        refused = refused or _step(server)
    return refused and (_step(client, reads=True) or refused)


def _step(side: ssl.SSLObject, *, reads: bool = False) -> str:
    try:
        side.read(1) if reads else side.do_handshake()
    except ssl.SSLWantReadError:
        return ""
    except ssl.SSLError as error:
        return str(error)
    return ""


def _dates(shown: Mapping[str, Any], verifier: ssl.SSLContext) -> _Dates:
    """The validity of a certificate, and the CA that signed it."""
    if not shown:
        return _Dates()
    chain = [shown, *(ca for ca in verifier.get_ca_certs() if ca["subject"] == shown["issuer"])]
    begins = (ssl.cert_time_to_seconds(each["notBefore"]) for each in chain)
    ends = (ssl.cert_time_to_seconds(each["notAfter"]) for each in chain)
    return _Dates(max(begins), min(ends))


def _common_name(shown: Mapping[str, Any]) -> str:
    names = (value for part in shown.get("subject", ()) for key, value in part if key == "commonName")
    return next(names, "")


@contextlib.contextmanager
def _readable(text: str) -> Iterator[str]:
    """A path from which OpenSSL can read the text, in memory if the system allows it."""
    in_memory = hasattr(os, "memfd_create")
    with os.fdopen(os.memfd_create("tls"), "wb") if in_memory else tempfile.NamedTemporaryFile("wb") as file:
        file.write(text.encode())
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}" if in_memory else file.name
