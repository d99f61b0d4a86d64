"""The TLS context of a cluster: the trusted authorities, and the client certificate."""

import ssl
import tempfile
from pathlib import Path

from kube.config import Tls
from kube.credentials import ConfigError
from ports.deadlines import DeadlineTlsSocket
from ports.tls import verifying_context


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
