"""The API server as real pods reach it: an address of their network with TLS, and a token for each service account.

As in a cluster, the environment names the address, and files that the pod mounts have its token and authority.
"""

import selectors
import socket
import ssl
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cached_property
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ports.clock import Clock
from sandbox.dataplane.processes import Launch
from sandbox.dataplane.tls import Certificate, ServerSide, server_context
from sandbox.processes.agent_client import GATEWAY

Issue = Callable[[str], str]
"""Returns a token for a user."""

Dial = Callable[[], socket.socket]
"""Connects to the API server, without TLS. Raises OSError."""

PORT = 443
NAME = "kubernetes.default.svc"
ENVIRONMENT: Mapping[str, str] = {"KUBERNETES_SERVICE_HOST": GATEWAY, "KUBERNETES_SERVICE_PORT": str(PORT)}
"""The variables of every container."""

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_SKEW, _LIFETIME = timedelta(days=1), timedelta(days=3650)
_HANDSHAKE_WITHIN = 10.0
_BUFFER = 65536


class ApiEndpoint:
    """Thread-safe."""

    def __init__(self, clock: Clock, issue: Issue, dial: Dial) -> None:
        self._clock = clock
        self._issue = issue
        self._dial = dial
        self._tokens: dict[str, str] = {}

    def files(self, launch: Launch) -> Mapping[str, str]:
        """The files of a container with the token of its account, by path; none if the pod mounts no token."""
        if f"{_ACCOUNT}/ca.crt" not in launch.files:
            return {}
        user = f"system:serviceaccount:{launch.namespace}:{launch.service_account}"
        if user not in self._tokens:
            self._tokens[user] = self._issue(user)
        texts = {"token": self._tokens[user], "ca.crt": self._certificate.cert, "namespace": launch.namespace}
        return {f"{_ACCOUNT}/{name}": text for name, text in texts.items()}

    def serve(self, connection: socket.socket) -> None:
        """Pass a client's connection on to the API server until one side ends it. Raises OSError."""
        context = server_context(ServerSide(self._certificate, demands=False))
        connection.settimeout(_HANDSHAKE_WITHIN)
        with context.wrap_socket(connection, server_side=True) as secured, self._dial() as plain:
            secured.settimeout(None)
            plain.settimeout(None)
            _pass_on(secured, plain)

    @cached_property
    def _certificate(self) -> Certificate:
        """Of the server, and its own authority."""
        key, now = ec.generate_private_key(ec.SECP256R1()), self._clock.wall()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
        names = [x509.IPAddress(ip_address(GATEWAY)), *map(x509.DNSName, ("kubernetes", "kubernetes.default", NAME))]
        identity = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        serial = x509.random_serial_number()
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), serial, now - _SKEW, now + _LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(identity, critical=False)
            .sign(key, hashes.SHA256())
        )
        form = serialization.PrivateFormat.PKCS8
        secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        text = certificate.public_bytes(serialization.Encoding.PEM).decode()
        return Certificate(text, text, secret.decode())


def _pass_on(secured: ssl.SSLSocket, plain: socket.socket) -> None:
    """Pass bytes in both directions, in one thread: a connection of OpenSSL must not be used by two at once."""
    with selectors.DefaultSelector() as selector:
        selector.register(secured, selectors.EVENT_READ, (secured, plain))
        selector.register(plain, selectors.EVENT_READ, (plain, secured))
        while True:
            for key, _ in selector.select():
                source, sink = key.data
                if not _moved(source, sink):
                    return


def _moved(source: socket.socket, sink: socket.socket) -> bool:
    """Move what has arrived; False at the end. What OpenSSL has decrypted already shows on no selector."""
    while data := source.recv(_BUFFER):
        sink.sendall(data)
        if not (isinstance(source, ssl.SSLSocket) and source.pending()):
            return True
    return False
