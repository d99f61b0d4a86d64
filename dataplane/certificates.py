"""What certificates are worth, before anybody relies on them: read and tried out by OpenSSL itself (objects.md 9.1).

`ssl` reads a certificate only in a handshake. So each has one here, in memory, with a counterpart that trusts it, and
another one with a counterpart that trusts the authority that it is to be judged by.
"""

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from dataplane.tls import load_certificate

_NO_CHECK_TIME = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME, which `ssl` has no name for: dates are for the operator's own clock to judge."""

CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"


class Role(Enum):
    """On which side of connections a certificate is shown; some are good for one only."""

    SERVER = "server"
    CLIENT = "client"


class BadCertificate(Exception):
    """Raised when a certificate cannot be used: `key` of the Secret has something wrong, `message`; and the way out."""

    def __init__(self, key: str, message: str, way_out: str = "replace it") -> None:
        super().__init__(f"{key} {message}")
        self.message = message
        self.key = key
        self.way_out = way_out


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a certificate says of itself: for which names, and when, it holds. `issuer` has signed it."""

    names: tuple[str, ...]
    begins: datetime
    ends: datetime
    issuer: object = ()

    def covers(self, host: str) -> bool:
        """Whether it holds for a host; a `*` stands for the first label of a name."""
        wildcard = f"*.{host.partition('.')[2]}"
        return any(name.lower() in (host.lower(), wildcard.lower()) for name in self.names)


def read(cert: bytes, key: bytes, role: Role = Role.SERVER) -> Certificate:
    """A certificate, which need not be signed by anybody that is known. Raises BadCertificate."""
    shown = _presented(cert, key, role, cert, ssl.VERIFY_X509_PARTIAL_CHAIN)
    names = tuple(str(value) for _, value in shown.get("subjectAltName", ()))
    return Certificate(names, _time(shown["notBefore"]), _time(shown["notAfter"]), shown.get("issuer"))


def authority_of(ca: bytes, certificate: Certificate) -> Certificate | None:
    """The authority among those of a `ca.crt` that has signed a certificate; None where another one stands between.

    Of several, as in the middle of a change, the one that holds longest. Raises BadCertificate.
    """
    found = (each for each in _authorities(ca) if each["subject"] == certificate.issuer)
    made = [Certificate((), _time(each["notBefore"]), _time(each["notAfter"]), each["issuer"]) for each in found]
    return max(made, key=lambda each: each.ends, default=None)


def check_trust(cert: bytes, key: bytes, role: Role, ca: bytes) -> None:
    """Whether who trusts `ca` accepts a certificate in a role, dates and names aside. Raises BadCertificate."""
    _presented(cert, key, role, ca)


def _presented(cert: bytes, key: bytes, role: Role, ca: bytes, flags: int = 0) -> Mapping[str, Any]:
    """What the other side sees of a certificate when it trusts `ca`. Raises BadCertificate when it refuses it."""
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
    """Raises BadCertificate when one side refuses the other."""
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
