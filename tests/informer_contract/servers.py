"""API servers to which things happen: one of the sandbox, one of Kubernetes."""

import contextlib
import secrets
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from kube.client import Client
from kube.config import ClusterConfig, Tls
from kube.credentials import NoCredentials, StaticCredentials
from kube.errors import TooManyRequests
from kube.http_transport import HttpTransport
from kube.objects import Json
from kube.resources import CLUSTER_ROLE_BINDINGS, CONFIG_MAPS, Resource
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from sandbox.apiserver import ApiServer, Fault
from sandbox.apiserver.audit import Call
from sandbox.apiserver.http_server import HttpServer
from sandbox.apiserver.refusals import Refusal
from tests.controlplane.processes import ControlPlane
from tests.e2e.waiting import CLOCK, eventually

READER = "reader"
"""The name of the user whose informers are tested."""

_SHED = "contract-shed"
_PRIORITY_LEVELS = Resource(
    "flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration", namespaced=False
)
_FLOW_SCHEMAS = Resource("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", namespaced=False)


class Server(Protocol):
    """One API server with two users: the admin, who arranges things, and the reader, whose informers are tested."""

    @property
    def name(self) -> str:
        """The name of the world."""

    @property
    def port(self) -> int:
        """On 127.0.0.1, always the same."""

    @property
    def admin(self) -> Client:
        """All rights, directly to the server."""

    @property
    def token_file(self) -> Path:
        """Holds the reader's token."""

    def config(self, port: int) -> ClusterConfig:
        """The way to the server through a port, without an identity."""

    def restart(self) -> None:
        """End the server and start it again; it serves when this returns. What happened before cannot be watched."""

    def replace_token(self) -> None:
        """Refuse the reader's token and put another into the file; open watches may end."""

    def shedding(self) -> contextlib.AbstractContextManager[None]:
        """While the block runs, the reader is answered 429 with Retry-After: 1."""


class SandboxServer:
    """The sandbox's, over HTTP on a port. A restart is a new server with the old one's objects."""

    name = "sandbox"

    def __init__(self, directory: Path) -> None:
        self.token_file = directory / "token"
        self._admin_token = secrets.token_hex(16)
        self._sheds = False
        self._write_token()
        self._server = self._new_server()
        self._http = HttpServer(self._server)
        self._http.start()
        self.port = self._http.port
        self._transport = _as_user(self.config(self.port), self._admin_token)
        self.admin = Client(self._transport)

    def config(self, port: int) -> ClusterConfig:
        """See `Server.config`."""
        return ClusterConfig(f"http://127.0.0.1:{port}", "contract", credentials=NoCredentials())

    def restart(self) -> None:
        """See `Server.restart`."""
        self._http.stop()
        self._server.disconnect()
        snapshot, self._server = self._server.snapshot(), self._new_server()
        self._server.restore(snapshot)
        self._http = HttpServer(self._server, port=self.port)
        self._http.start()

    def replace_token(self) -> None:
        """See `Server.replace_token`."""
        self._write_token()
        self.restart()

    @contextlib.contextmanager
    def shedding(self) -> Iterator[None]:
        """See `Server.shedding`."""
        self._sheds = True
        try:
            yield
        finally:
            self._sheds = False

    def stop(self) -> None:
        """End it."""
        self._http.stop()
        self._transport.close()

    def _write_token(self) -> None:
        self.token_file.write_text(secrets.token_hex(16))

    def _new_server(self) -> ApiServer:
        tokens = {self._admin_token: "admin", self.token_file.read_text(): READER}
        return ApiServer(CLOCK, SystemRandomness(), tokens, self._fault)

    def _fault(self, call: Call) -> Fault | None:
        if not self._sheds or call.user != READER:
            return None
        message = "Too many requests, please try again later."
        return Fault(refusal=Refusal(429, "TooManyRequests", message, {"retryAfterSeconds": 1}))


class RealServer:
    """Kubernetes' own, on etcd, without controllers."""

    name = "real"

    def __init__(self, control_plane: ControlPlane, directory: Path) -> None:
        self._control_plane = control_plane
        self.port = int(control_plane.server.rpartition(":")[2])
        self.token_file = directory / "token"
        self.token_file.write_text(control_plane.tokens[READER])
        self._transport = _as_user(self.config(self.port), control_plane.tokens["admin"])
        self.admin = Client(self._transport)
        self.admin.create(CLUSTER_ROLE_BINDINGS, _all_rights(READER))

    def config(self, port: int) -> ClusterConfig:
        """See `Server.config`."""
        ca = self._control_plane.ca.read_bytes()
        return ClusterConfig(f"https://127.0.0.1:{port}", "contract", tls=Tls(ca=ca), credentials=NoCredentials())

    def restart(self) -> None:
        """See `Server.restart`. The watch cache is lost with the process, etcd's history is compacted."""
        self._control_plane.compact()
        self._control_plane.restart_api_server()

    def replace_token(self) -> None:
        """See `Server.replace_token`."""
        self.token_file.write_text(self._control_plane.replace_token(READER))
        self._control_plane.restart_api_server()

    @contextlib.contextmanager
    def shedding(self) -> Iterator[None]:
        """See `Server.shedding`: a priority level without seats, for the reader alone.

        Kubernetes lets one request at a time in even there, so one that does not end takes that place.
        """
        self.admin.create(_PRIORITY_LEVELS, _no_seats(_SHED))
        self.admin.create(_FLOW_SCHEMAS, _flow_of(READER, _SHED))
        try:
            with contextlib.ExitStack() as held:
                eventually(lambda: self._takes_last_place(held))
                yield
        finally:
            self.admin.delete(_FLOW_SCHEMAS, _SHED)
            self.admin.delete(_PRIORITY_LEVELS, _SHED)

    def _takes_last_place(self, held: contextlib.ExitStack) -> bool:
        """Send a request whose body never comes; whether the reader's next one is shed."""
        token = self.token_file.read_text()
        context = ssl.create_default_context(cadata=self._control_plane.ca.read_text())
        head = (
            f"POST {CONFIG_MAPS.path('default')} HTTP/1.1",
            "Host: 127.0.0.1",
            f"Authorization: Bearer {token}",
            "Content-Type: application/json",
            "Content-Length: 100",
            "Expect: 100-continue",
        )
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=10.0)
        endless = held.enter_context(context.wrap_socket(plain, server_hostname="127.0.0.1"))
        endless.sendall("\r\n".join((*head, "", "")).encode())
        endless.recv(1)  # the server reads its body or refuses it
        with contextlib.closing(_as_user(self.config(self.port), token)) as transport:
            return _is_shed(Client(transport))

    def stop(self) -> None:
        """Leave it."""
        self._transport.close()


def _as_user(config: ClusterConfig, token: str) -> HttpTransport:
    with_token = ClusterConfig(config.server, config.source, tls=config.tls, credentials=StaticCredentials.token(token))
    return HttpTransport(with_token, {}, SystemClock())


def _is_shed(client: Client) -> bool:
    try:
        client.list_page(CONFIG_MAPS, limit=1)
    except TooManyRequests:
        return True
    return False


def _all_rights(user: str) -> Json:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    return {"metadata": {"name": user}, "roleRef": role, "subjects": [subject]}


def _no_seats(name: str) -> Json:
    limited = {
        "nominalConcurrencyShares": 0,
        "lendablePercent": 0,
        "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"},
    }
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}}


def _flow_of(user: str, level: str) -> Json:
    rules = {
        "subjects": [{"kind": "User", "user": {"name": user}}],
        "resourceRules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
        ],
    }
    spec = {"matchingPrecedence": 2, "priorityLevelConfiguration": {"name": level}, "rules": [rules]}
    return {"metadata": {"name": level}, "spec": spec}
