"""Checks of certificates before the operator uses them: OpenSSL itself reads and tries them (objects.md 9.1).

`ssl` reads a certificate only in a handshake. Each certificate therefore performs two in memory: one with a peer that
trusts it directly, and one with a peer that trusts the authority in question.
"""

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from dataplane.tls import load_certificate

_NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which `ssl` does not name. The operator compares dates with its own clock."""

CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"


class Role(Enum):
    """The side of a connection that shows a certificate; some certificates serve one side only."""

    SERVER = "server"
    CLIENT = "client"


class BadCertificate(Exception):
    """Raised for an unusable certificate: the `key` of the Secret, what is wrong (`message`), and the way out."""

    def __init__(self, key: str, message: str, way_out: str = "replace it") -> None:
        super().__init__(f"{key} {message}")
        self.message = message
        self.key = key
        self.way_out = way_out


@dataclass(frozen=True, slots=True)
class Certificate:
    """The content of a certificate: names, validity, and the `issuer` that signed it."""

    names: tuple[str, ...]
    begins: datetime
    ends: datetime
    issuer: object = ()

    def covers(self, host: str) -> bool:
        """True if the certificate is valid for a host; a `*` matches the first label of a name."""
        wildcard = f"*.{host.partition('.')[2]}"
        return any(name.lower() in (host.lower(), wildcard.lower()) for name in self.names)


def read(cert: bytes, key: bytes, role: Role = Role.SERVER) -> Certificate:
    """Read a certificate, from a known or an unknown issuer. Raises BadCertificate."""
    shown = _presented(cert, key, role, cert, ssl.VERIFY_X509_PARTIAL_CHAIN)
    names = tuple(str(value) for _, value in shown.get("subjectAltName", ()))
    return Certificate(names, _time(shown["notBefore"]), _time(shown["notAfter"]), shown.get("issuer"))


def authority_of(ca: bytes, certificate: Certificate) -> Certificate | None:
    """The authority in `ca` (`ca.crt`) that signed a certificate; None if an intermediate authority signed it.

    Of several, e.g. during a rotation, the one that is valid longest. Raises BadCertificate.
    """
    found = (each for each in _authorities(ca) if each["subject"] == certificate.issuer)
    certificates = [
        Certificate((), _time(each["notBefore"]), _time(each["notAfter"]), each["issuer"]) for each in found
    ]
    return max(certificates, key=lambda each: each.ends, default=None)


def end_of_trust(ca: bytes) -> datetime | None:
    """The expiry of the authority in `ca` that is valid longest; None if no certificate in it may sign others.

    Raises BadCertificate.
    """
    return max((_time(each["notAfter"]) for each in _authorities(ca)), default=None)


def check_trust(cert: bytes, key: bytes, role: Role, ca: bytes) -> None:
    """Check that a peer that trusts `ca` accepts a certificate in a role; ignores dates and names. Raises
    BadCertificate.
    """
    _presented(cert, key, role, ca)


def _presented(cert: bytes, key: bytes, role: Role, ca: bytes, flags: int = 0) -> Mapping[str, Any]:
    """The certificate as a peer that trusts `ca` sees it. Raises BadCertificate if the peer rejects it."""
    client, server = _context(ssl.PROTOCOL_TLS_CLIENT), _context(ssl.PROTOCOL_TLS_SERVER)
    client.check_hostname = False
    _load(server, cert, key)
    judge = client
    if role is Role.CLIENT:
        judge = server
        _load(client, cert, key)
        client.verify_mode, server.verify_mode = ssl.CERT_NONE, ssl.CERT_REQUIRED
    judge.verify_flags = ssl.VerifyFlags(judge.verify_flags | flags)
    _trust(judge, ca)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server)
    serving = server.wrap_bio(to_server, to_client, server_side=True)
    _shake_hands(asking, serving)
    return (asking if judge is client else serving).getpeercert() or {}


def _authorities(ca: bytes) -> Iterable[Mapping[str, Any]]:
    context = _context(ssl.PROTOCOL_TLS_CLIENT)
    _trust(context, ca)
    return context.get_ca_certs()


def _trust(context: ssl.SSLContext, ca: bytes) -> None:
    try:
        context.load_verify_locations(cadata=ca.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise BadCertificate(CA, f"contains no usable certificate: {error}") from None


def _load(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    try:
        load_certificate(context, cert, key)
    except (ssl.SSLError, ValueError) as error:
        raise BadCertificate(CERTIFICATE, f"makes no usable pair with {KEY}: {error}") from None


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.verify_flags = ssl.VerifyFlags(context.verify_flags | _NO_CHECK_TIME)
    return context


def _shake_hands(*sides: ssl.SSLObject) -> None:
    """Raises BadCertificate if one side rejects the other."""
    for side in sides * 3:
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
        except ssl.SSLCertVerificationError as error:
            raise BadCertificate(CERTIFICATE, f"is not accepted: {error.verify_message}") from None
        except ssl.SSLError as error:
            raise BadCertificate(CERTIFICATE, f"cannot be used: {error}") from None


def _time(text: str) -> datetime:
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(text), UTC)
