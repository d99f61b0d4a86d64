"""The admission webhook: an HTTPS server in every replica, whose certificate the replicas keep in a Secret.

    ValidatingWebhookConfiguration ── hosts ──▶ certificate ──▶ Secret ──▶ caBundle ──▶ the server's TLS
    (the chart creates it)                                                 (patched)

A certificate has an authority of its own, which signs nothing else and whose key is discarded. The Secret keeps the
earlier authorities that are still valid, so that replicas change their certificates one after another. Each write names
the version of the object that was read; the loser of a race reads again.
"""

import base64
import itertools
import os
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import msgspec
import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from controller_manager.health import listening
from controllers.admission import BadReview, Judge, review
from kube.client import Client
from kube.errors import AlreadyExists, ApiError, Conflict
from kube.failure_log import FailureLog
from kube.objects import Json, Object, secret_data
from kube.resources import SECRETS, VALIDATING_WEBHOOK_CONFIGURATIONS
from ports.clock import Clock
from ports.failures import ANY_FAILURE
from ports.http_server import Server, answer_with
from ports.stopping import Stop
from ports.transport import Request, Response, TransportError

_log = structlog.get_logger(__name__)

_BAD_SIGNATURE = (InvalidSignature, UnsupportedAlgorithm)

PATH = "/validate"

_LONGEST_REVIEW = 8 << 20
"""Bytes: the API server accepts objects of 3 MiB, and sends the earlier one with an update."""
_PATIENCE = 5.0
"""Seconds for a client to send a review, and to receive the answer; the API server waits for less."""
_MOST_AT_ONCE = 8
"""Reviews that are judged side by side; the server does not answer further ones, so that reconciles get their CPU."""

_LIFETIME = timedelta(days=365)
_RENEWED_BEFORE = timedelta(days=120)
_CLOCK_SKEW = timedelta(hours=1)
"""How far the API server's clock may be behind."""
_LOOK_AGAIN = 300.0
"""Seconds until a replica reads Secret and configuration again: another may have renewed, a user may have deleted."""
_RETRY = 10.0

CA, CERTIFICATE, KEY = "ca.crt", "tls.crt", "tls.key"
_MARK: Mapping[str, str] = {
    "app.kubernetes.io/name": "tidb-operator",
    "app.kubernetes.io/component": "admission-webhook",
}
"""The labels of our Secret; one without them belongs to another program."""


class Unusable(Exception):
    """Raised if the webhook cannot get a certificate; the message says why, and the way out."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate with its key, and the authorities that verify it and its predecessors; all in PEM."""

    authorities: bytes
    certificate: bytes
    key: bytes

    def is_good_for(self, hosts: Sequence[str], now: datetime) -> bool:
        """True if a server can use the pair for all `hosts` until it is due for renewal."""
        try:
            certificate = x509.load_pem_x509_certificate(self.certificate)
            certificate.verify_directly_issued_by(x509.load_pem_x509_certificates(self.authorities)[0])
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            key = serialization.load_pem_private_key(self.key, None)
        except (ValueError, TypeError, x509.ExtensionNotFound, *_BAD_SIGNATURE):
            return False
        if key.public_key() != certificate.public_key():
            return False
        is_due = certificate.not_valid_after_utc - _RENEWED_BEFORE <= now
        return not is_due and {_name_of(host) for host in hosts} <= set(names)


def new_pair(hosts: Sequence[str], now: datetime, earlier: bytes = b"") -> Pair:
    """A pair for `hosts`; `earlier` are authorities of which those still valid are kept."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "TiDB operator admission webhook CA")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "TiDB operator admission webhook")])
    # all authorities have one name, and clients distinguish them by this
    identity = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    authority = (
        _builder(issuer, issuer, authority_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(identity, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(subject, issuer, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_name_of(host) for host in hosts]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identity), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificates = [authority, *_still_valid(earlier, now)]
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    return Pair(
        b"".join(each.public_bytes(pem) for each in certificates),
        certificate.public_bytes(pem),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain),
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        subject_name=subject,
        issuer_name=issuer,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - _CLOCK_SKEW,
        not_valid_after=now + _LIFETIME,
    )


def _still_valid(authorities: bytes, now: datetime) -> Iterator[x509.Certificate]:
    try:
        certificates = x509.load_pem_x509_certificates(authorities)
    except ValueError:
        return
    yield from itertools.islice(
        (certificate for certificate in certificates if certificate.not_valid_after_utc > now), 2
    )


def _name_of(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _context_of(pair: Pair) -> ssl.SSLContext:
    """The TLS of a pair; the key is written to no disk."""
    context = _tls()
    memory = os.memfd_create("admission")
    try:
        os.write(memory, pair.certificate + pair.key)
        context.load_cert_chain(f"/proc/self/fd/{memory}")
    finally:
        os.close(memory)
    return context


def _tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class Keeper:
    """Keeps certificate, Secret and caBundle in agreement, and serves the certificate. One thread steps it."""

    def __init__(self, client: Client, name: str, namespace: str, clock: Clock) -> None:
        """`name` is the name of the configuration, and of the Secret in `namespace`. Nothing is read yet."""
        self._client, self._name, self._namespace, self._clock = client, name, namespace, clock
        self._failures = FailureLog(_log, clock)
        self._served: Pair | None = None
        self._context = _tls()

    def context(self) -> ssl.SSLContext:
        """The TLS of the next connection; without a certificate yet, every handshake fails."""
        return self._context

    def run(self, stop: Stop) -> None:
        """Step until `stop` is set."""
        while not stop.wait(self._clock, self.step()):
            pass

    def step(self) -> float:
        """Look once; return the seconds until the next look."""
        try:
            self._look()
        except (Conflict, AlreadyExists):
            return 1.0  # another replica was faster
        except (ApiError, TransportError, Unusable) as error:
            self._failures.failed(
                "the admission webhook has no certificate that the API server knows", cause=str(error)
            )
            return _RETRY
        self._failures.worked("the API server knows the admission webhook's certificate again")
        return _LOOK_AGAIN

    def _look(self) -> None:
        configuration = self._client.find(VALIDATING_WEBHOOK_CONFIGURATIONS, self._name)
        if configuration is None:
            raise Unusable(f"no ValidatingWebhookConfiguration {self._name}; the chart creates it")
        tree = configuration.decode()
        pair = self._pair(_hosts(tree))
        self._publish(tree, base64.b64encode(pair.authorities).decode())
        if pair != self._served:
            self._served, self._context = pair, _context_of(pair)
            _log.info("the admission webhook has a certificate", secret=f"{self._namespace}/{self._name}")

    def _pair(self, hosts: Sequence[str]) -> Pair:
        """The pair in the Secret, renewed if it is not good for a while."""
        if not hosts:
            raise Unusable(f"ValidatingWebhookConfiguration {self._name} names no Service and no URL")
        secret = self._client.find(SECRETS, self._name, self._namespace)
        if secret is None:
            pair = new_pair(hosts, self._clock.wall())
            body = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": _data(pair)}
            self._client.create(SECRETS, body | {"metadata": {"name": self._name, "labels": _MARK}}, self._namespace)
            return pair
        if not _MARK.items() <= secret.metadata.labels.items():
            raise Unusable(f"Secret {self._namespace}/{self._name} is not the webhook's; delete or rename it")
        data = secret_data(secret)
        pair = Pair(*(data.get(key, b"") for key in (CA, CERTIFICATE, KEY)))
        return pair if pair.is_good_for(hosts, self._clock.wall()) else self._renew(secret, hosts, pair.authorities)

    def _renew(self, secret: Object, hosts: Sequence[str], earlier: bytes) -> Pair:
        pair = new_pair(hosts, self._clock.wall(), earlier)
        version = {"resourceVersion": secret.metadata.resource_version}
        self._client.patch(SECRETS, self._name, self._namespace, {"metadata": version, "data": _data(pair)})
        _log.info("certificate renewed", secret=f"{self._namespace}/{self._name}", hosts=list(hosts))
        return pair

    def _publish(self, tree: Json, bundle: str) -> None:
        """Patch the configuration where it lacks the authorities."""
        webhooks: list[Json] = tree["webhooks"]
        if all(webhook["clientConfig"].get("caBundle") == bundle for webhook in webhooks):
            return
        patched = [webhook | {"clientConfig": webhook["clientConfig"] | {"caBundle": bundle}} for webhook in webhooks]
        version = {"resourceVersion": tree["metadata"]["resourceVersion"]}
        patch = {"metadata": version, "webhooks": patched}
        self._client.patch(VALIDATING_WEBHOOK_CONFIGURATIONS, self._name, "", patch)


def _hosts(configuration: Json) -> list[str]:
    """The hosts that the API server will ask the certificate for."""
    found = dict[str, None]()
    for webhook in configuration.get("webhooks") or ():
        config = webhook["clientConfig"]
        if service := config.get("service"):
            found[f"{service['name']}.{service['namespace']}.svc"] = None
        elif host := urlsplit(config.get("url") or "").hostname:
            found[host] = None
    return list(found)


def _data(pair: Pair) -> Json:
    values = {CA: pair.authorities, CERTIFICATE: pair.certificate, KEY: pair.key}
    return {key: base64.b64encode(value).decode() for key, value in values.items()}


class Gate:
    """Answers reviews. Thread-safe."""

    def __init__(self, judges: Mapping[tuple[str, str], Judge[Any]], manages: Callable[[Object], bool]) -> None:
        """`manages` is True for the objects of this operator."""
        self._judges, self._manages = judges, manages
        self._permits = threading.BoundedSemaphore(_MOST_AT_ONCE)

    def handle(self, request: Request) -> Response:
        """The answer to a request: 200 with a review, 4xx if it is none, 503 if too many come at once."""
        if request.url.partition("?")[0] != PATH:
            return _plain(404, f"try {PATH}")
        if request.method != "POST":
            return _plain(405, "only POST is supported")
        if not self._permits.acquire(blocking=False):
            return _plain(503, "busy with other reviews; try again")
        try:
            answer = review(request.body or b"", self._judges, self._manages)
        except BadReview as error:
            return _plain(400, str(error))
        except ANY_FAILURE:
            _log.exception("review failed")
            return _plain(500, "failed, see the log")
        finally:
            self._permits.release()
        return Response(200, {"content-type": "application/json"}, msgspec.json.encode(answer))


def _plain(status: int, message: str) -> Response:
    return Response(status, {"content-type": "text/plain; charset=utf-8"}, f"{message}\n".encode())


class Webhook:
    """Server and keeper, from the start of a process to its end."""

    def __init__(self, gate: Gate, keeper: Keeper, address: str) -> None:
        self._gate, self._keeper, self._address = gate, keeper, address
        self._stop = Stop()
        self._server: Server | None = None
        self._thread = threading.Thread(target=keeper.run, args=(self._stop,), name="admission-certificate")

    def start(self) -> None:
        """Listen and serve. Raises ListenError."""

        def server(where: tuple[str, int]) -> Server:
            answer = answer_with(self._gate.handle)
            return Server("admission", where, answer, self._keeper, longest_body=_LONGEST_REVIEW, patience=_PATIENCE)

        self._server = listening(self._address, "--admission-webhook-addr", server)
        self._server.start()
        self._thread.start()
        _log.info("serving the admission webhook", port=self._server.port)

    @property
    def port(self) -> int:
        """The port of the server, after `start`."""
        assert self._server
        return self._server.port

    def stop(self) -> None:
        """End server and thread."""
        self._stop.set()
        if self._server is not None:
            self._server.stop()
            self._thread.join()
