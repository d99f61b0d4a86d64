"""Discovery's HTTP API as a function from request to response (objects.md 10.2), for servers and the sandbox."""

import base64
import binascii
from collections.abc import Callable, Mapping
from urllib.parse import unquote, urlsplit

import structlog

from dataplane.clients import DataPlane, MakeTransport
from discovery.askers import compares_addresses
from discovery.asking import Refused
from discovery.masters import DMDiscovery
from discovery.reading import LiveClusters, LiveDMClusters, LiveMasters, LiveMembers
from discovery.service import Discovery
from kube.client import Client
from kube.errors import ApiError
from ports.clock import Clock
from ports.fencing import OpenFence
from ports.foreign_text import printable, shortened
from ports.transport import Request, Response, Transport, TransportError

_log = structlog.get_logger(__name__)

_API_TIMEOUT = 2.0
"""The timeout of a request to the Kubernetes API in seconds: start scripts wait three for their answer, and retry."""


class MissingSetting(Exception):
    """Raised when a required environment variable is missing."""


class App:
    """Answers requests. Thread-safe."""

    def __init__(self, discovery: Discovery, masters: DMDiscovery) -> None:
        self._discovery = discovery
        self._masters = masters

    def handle(self, request: Request) -> Response:
        """Answer GET `/new/{b64}[/pd|/dm]` and `/verify/{b64}`; a refusal is a 500 with its reason."""
        if request.method != "GET":
            return _text(405, f"{request.method} is not supported\n")
        match [unquote(part) for part in urlsplit(request.url).path.split("/")]:
            case ["", "new", encoded] | ["", "new", encoded, "pd"]:
                return self._new(encoded, request.client, self._discovery.new)
            case ["", "new", encoded, "dm"]:
                return self._new(encoded, request.client, self._masters.new)
            case ["", "new", _, kind]:
                return _text(500, f"register type {kind} is not supported; only pd and dm are\n")
            case ["", "verify", encoded]:
                return self._verify(encoded)
        return _text(404, "404 page not found\n")

    def _new(self, encoded: str, source: str, decide: Callable[[str, str], str]) -> Response:
        try:
            asked = _decoded(encoded)
            answer = decide(asked, source)
        except (Refused, ApiError, TransportError) as error:
            _log.info("a pod must wait", question=shortened(encoded), source=source, reason=printable(str(error)))
            return _text(500, f"{error}\n")
        _log.info("a pod may start", pod=asked, answer=answer)
        return _text(200, answer)

    def _verify(self, encoded: str) -> Response:
        asked = ""
        try:
            asked = _decoded(encoded)
            answer = self._discovery.verify(asked)
        except (Refused, ApiError, TransportError) as error:
            _log.info("cannot verify PD address", question=shortened(encoded), reason=printable(str(error)))
            return _text(500, f"{error}\n{asked}")
        return _text(200, answer)


def make_handler(
    environ: Mapping[str, str], kubernetes: Transport, dataplane: MakeTransport, clock: Clock
) -> Callable[[Request], Response]:
    """Discovery in this process: `kubernetes` uses the identity of its pod, `dataplane` reaches PD with a certificate.

    Raises MissingSetting.
    """
    client = Client(kubernetes, user_agent="tidb-discovery", timeout=_API_TIMEOUT)
    return make_app(environ, client, DataPlane(dataplane, OpenFence(), clock), clock).handle


def make_app(environ: Mapping[str, str], client: Client, dataplane: DataPlane, clock: Clock) -> App:
    """Discovery for the namespace in MY_POD_NAMESPACE. Raises MissingSetting."""
    namespace = setting(environ, "MY_POD_NAMESPACE")
    compares, counts_slots = compares_addresses(environ), environ.get("DELETE_SLOTS_COUNT") == "true"
    clusters = LiveClusters(client, compares_addresses=compares, counts_slots=counts_slots)
    dm_clusters = LiveDMClusters(client, compares_addresses=compares, counts_slots=counts_slots)
    return App(
        Discovery(clusters, LiveMembers(client, dataplane), clock, namespace),
        DMDiscovery(dm_clusters, LiveMasters(client, dataplane), clock, namespace),
    )


def setting(environ: Mapping[str, str], name: str) -> str:
    """The value of a required variable. Raises MissingSetting."""
    if value := environ.get(name, ""):
        return value
    raise MissingSetting(f"the environment variable {name} is not set; the operator sets it in discovery's Deployment")


def _decoded(encoded: str) -> str:
    """Decode standard or URL-safe base64 without the newline that scripts add. Raises Refused."""
    standard = encoded.replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(standard, validate=True).decode().strip()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise Refused(f"{encoded!r} is not base64: {error}") from error


def _text(status: int, text: str) -> Response:
    return Response(status, {"content-type": "text/plain; charset=utf-8"}, text.encode())
