"""Who may speak with whom over TLS: real handshakes of OpenSSL, in memory, on the world's clock (objects.md 9).

A handshake takes a millisecond, and the same two sides come to the same end, so its outcome is kept by what the
certificates contain. Only how late it is OpenSSL can't know here: the world's clock is not the machine's, so dates are
left out of the handshake and compared with it afterwards.
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
"""X509_V_FLAG_NO_CHECK_TIME, which `ssl` has no name for."""

_KEPT = 4096
"""Outcomes; certificates that were rotated away are forgotten in time."""

_WRONG_VERSION = "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"
"""What a client reads that speaks TLS with a server which does not."""

_REFUSED = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {} (_ssl.c:1006)"
_ALERT = "[SSL: {}] {} (_ssl.c:2580)"


@dataclass(frozen=True, slots=True)
class Certificate:
    """What one side has, as PEM: whom it trusts, its certificate and its key.

    `verifies`: it looks at the other's; `checks_names`: and at the name in it.
    """

    ca: str = ""
    cert: str = ""
    key: str = field(default="", repr=False)
    verifies: bool = True
    checks_names: bool = True

    def checks(self, host: str) -> bool:
        """Whether it looks whether the other's certificate is for a host."""
        return bool(host) and self.verifies and self.checks_names

    @classmethod
    def of(cls, credentials: Credentials) -> "Certificate":
        """The same from bytes."""
        parts = (credentials.ca, credentials.cert, credentials.key)
        ca, cert, key = (part.decode("utf-8", "replace") for part in parts)
        return cls(ca, cert, key, checks_names=credentials.checks_names)


NOBODY = Certificate()
"""A client without certificates that trusts no CA of a cluster."""

PROVEN = Certificate(ca="proven on a socket of its own")
"""A client whose handshake has been on a real socket."""


@dataclass(frozen=True, slots=True)
class ServerSide:
    """How a server speaks TLS. `demands` a certificate of each client; with `names`, one of these as its CN."""

    certificate: Certificate
    demands: bool = True
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Dates:
    """When the certificates of one side hold, in seconds of the Unix clock."""

    begin: float = float("-inf")
    end: float = float("inf")


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How a handshake ended, dates aside: the client's error, empty when there was none."""

    error: str = ""
    server: _Dates = _Dates()
    client: _Dates = _Dates()
    client_name: str = ""


_Question = tuple[Certificate, Certificate, bool, str]


class Handshakes:
    """Handshakes between anybody. The callers hold the data plane's lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._outcomes: dict[_Question, _Outcome] = {}

    def failure(self, client: Certificate | None, server: ServerSide | None, host: str) -> str:
        """Why a client does not get through to a server, in the words that it reads itself; empty when it does.

        None is a side that speaks no TLS. Without `host` the name is not compared.
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
        found = self._outcomes.get(question)
        if found is None:
            if len(self._outcomes) >= _KEPT:
                self._outcomes.clear()
            found = self._outcomes[question] = _shake_hands(client, server, host)
        return found


def unusable(certificate: Certificate) -> str:
    """Why nobody could serve with a certificate, in OpenSSL's words; empty when one could."""
    try:
        server_context(ServerSide(certificate))
    except (ssl.SSLError, ValueError) as error:
        return str(error)
    return ""


def server_context(side: ServerSide) -> ssl.SSLContext:
    """A server's side of connections. Raises ssl.SSLError, ValueError for what is no certificate."""
    context = _with_certificates(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), side.certificate)
    if side.demands:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _client_context(certificate: Certificate, host: str) -> ssl.SSLContext:
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
        asking, serving = _client_context(client, host), server_context(server)
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
    """Whether a name has two labels: OpenSSL lets no `*` stand for the first of these, Go does."""
    return host.count(".") == 1


def _covers(shown: Mapping[str, Any], host: str) -> bool:
    names = {value for _, value in shown.get("subjectAltName", ())}
    return not names.isdisjoint({host, f"*.{host.partition('.')[2]}"})


def _talk(client: ssl.SSLObject, server: ssl.SSLObject) -> str:
    """Carry the handshake to its end; the client's error, empty when there was none."""
    refused = ""
    # three flights are the most; in TLS 1.3 a client learns only when it reads that its certificate was refused
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
    """When a certificate holds, and the CA that has signed it."""
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
    """A path that OpenSSL can read; a key is on no disk where the system allows it."""
    in_memory = hasattr(os, "memfd_create")
    with os.fdopen(os.memfd_create("tls"), "wb") if in_memory else tempfile.NamedTemporaryFile("wb") as file:
        file.write(text.encode())
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}" if in_memory else file.name
