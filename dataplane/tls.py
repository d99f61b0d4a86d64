"""The certificates of one cluster, as its Secret holds them (objects.md 9.1)."""

import contextlib
import hashlib
import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dataplane.errors import BadTlsMaterial


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """The trusted authority and the client identity: PEM bytes of `ca.crt`, `tls.crt` and `tls.key`.

    With `checks_names` the server's certificate must cover the dialled name.
    """

    ca: bytes
    cert: bytes
    key: bytes = field(repr=False)
    checks_names: bool = field(default=True, kw_only=True)

    @classmethod
    def from_secret(cls, data: Mapping[str, bytes]) -> "TlsMaterial":
        """The decoded data of a Secret. Raises BadTlsMaterial, which names the missing key."""
        try:
            return cls(data["ca.crt"], data["tls.crt"], data["tls.key"])
        except KeyError as error:
            raise BadTlsMaterial(f"there is no key {error}; it must have ca.crt, tls.crt and tls.key") from None

    @property
    def fingerprint(self) -> str:
        """A digest of all three files; safe to log."""
        digest = hashlib.sha256()
        for part in (self.ca, self.cert, self.key):
            digest.update(hashlib.sha256(part).digest())
        return digest.hexdigest() if self.checks_names else f"{digest.hexdigest()} for any name"


def client_context(material: TlsMaterial) -> ssl.SSLContext:
    """A context that trusts only this CA, checks host names and presents the certificate. Raises BadTlsMaterial."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = material.checks_names
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=material.ca.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise BadTlsMaterial(f"ca.crt contains no usable certificate: {error}") from None
    try:
        load_certificate(context, material.cert, material.key)
    except (ssl.SSLError, ValueError) as error:
        raise BadTlsMaterial(f"tls.crt and tls.key are not a usable pair: {error}") from None
    return context


def load_certificate(context: ssl.SSLContext, cert: bytes, key: bytes) -> None:
    """Load a PEM certificate into a context. Raises ssl.SSLError, ValueError."""
    with _readable(cert) as cert_file, _readable(key) as key_file:
        # without a password OpenSSL would ask for one on the terminal if the key is encrypted
        context.load_cert_chain(cert_file, key_file, password="")


@contextlib.contextmanager
def _readable(content: bytes) -> Iterator[str]:
    """A path from which OpenSSL can read `content`, in memory if the system allows it."""
    in_memory = hasattr(os, "memfd_create")
    with os.fdopen(os.memfd_create("tls"), "wb") if in_memory else tempfile.NamedTemporaryFile("wb") as file:
        file.write(content)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}" if in_memory else file.name
