"""A Kubernetes API server in one object.

Every request is routed, struck by a fault if one matches, answered and audited. There is no authorization: every user
may do everything, and the audit records who did.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from kube.objects import Json
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, PODS, Resource
from ports.clock import Clock
from ports.randomness import Randomness
from ports.transport import ByteStream, ConnectionLost, Request, Response
from sandbox.apiserver import discovery, negotiation, pod_logs
from sandbox.apiserver.answers import in_yaml, refusal_answer
from sandbox.apiserver.api import Api, Ask
from sandbox.apiserver.audit import Audit, Call
from sandbox.apiserver.faults import Fault, Faults, no_faults
from sandbox.apiserver.port_forward import Dial, PortForward, no_dial
from sandbox.apiserver.refusals import Refusal, bad_request, not_found
from sandbox.apiserver.registry import Registry
from sandbox.apiserver.routes import Location, Target, locate, resolve, verb_of
from sandbox.apiserver.storage import Journal, Snapshot, Storage
from sandbox.apiserver.watching import WatchStream
from sandbox.apiserver.webhooks import Webhook
from sandbox.apiserver.world import World

ANONYMOUS = "system:anonymous"
_FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_ROOT = "system:apiserver"


Streamed: TypeAlias = WatchStream | pod_logs.FollowedLog
"""A streamed answer."""


class ApiServer:
    """The server. Thread-safe."""

    def __init__(
        self,
        clock: Clock,
        randomness: Randomness,
        tokens: Mapping[str, str] | None = None,
        faults: Faults = no_faults,
        *,
        window: int = 5000,
        pause: Callable[[float], None] | None = None,
    ) -> None:
        """`tokens` maps bearer tokens to user names; `window` is the number of changes kept per resource.

        `pause` lets time pass for a delayed answer; by default the calling thread waits on the clock.
        """
        self.audit = Audit()
        self.faults = faults
        self.storage = Storage(window)
        self.find_output: pod_logs.FindOutput = pod_logs.no_output
        """Finds the output of containers, if there is a kubelet."""
        self.dial: Dial = no_dial
        """Connects to pods, if there is a kubelet."""
        self._tokens = dict(tokens or {})
        self._clock = clock
        self._pause = pause or self._pass_time
        self._world = World(self.storage, Registry(), clock, randomness)
        self._api = Api(self._world)
        self.beside: dict[str, Callable[[Request], Response]] = {}
        """The answer for paths that Kubernetes does not have."""
        self._lock = threading.Lock()
        self._streams: set[Streamed] = set()
        for name in _FIRST_NAMESPACES:
            self._create_namespace(name)
        self.audit.clear()

    @property
    def webhooks(self) -> list[Webhook]:
        """The webhooks that change written objects, in order."""
        return self._world.webhooks

    def issue_token(self, user: str) -> str:
        """A new bearer token for a user, valid until the end."""
        token = self._world.randomness.uuid()
        self._tokens[token] = user
        return token

    def authenticate(self, authorization: str) -> str:
        """The user in an Authorization header, by default system:anonymous. Raises Refusal (401)."""
        if not authorization:
            return ANONYMOUS
        scheme, _, token = authorization.partition(" ")
        user = self._tokens.get(token.strip()) if scheme.lower() == "bearer" else None
        if user is None:
            raise Refusal(401, "Unauthorized", "Unauthorized")
        return user

    def handle(self, user: str, request: Request) -> Response:
        """Answer a request; a stream is read to its end. Raises ConnectionLost for a fault that breaks the
        connection.
        """
        answer = self.respond(user, request)
        if isinstance(answer, Response):
            return answer
        return Response(answer.status, answer.headers, b"".join(answer))

    def open_stream(self, user: str, request: Request, idle_timeout: float | None = None) -> ByteStream:
        """Answer a request as a stream, even if it is not a watch.

        A watch without data for `idle_timeout` seconds raises RequestTimeout to its reader.
        """
        answer = self.respond(user, request, idle_timeout)
        return WholeBody(answer) if isinstance(answer, Response) else answer

    def respond(self, user: str, request: Request, idle_timeout: float | None = None) -> Response | Streamed:
        """Answer a request with a whole answer, an open watch or a followed log. Raises ConnectionLost."""
        location = locate(request.url)
        target = resolve(location.path, self._world.registry.kinds)
        call = _call(user, request, location, target)
        fault = self.faults(call) or Fault()
        self._strike(call, fault)
        try:
            if fault.refusal:
                raise fault.refusal
            answer = self._answer(call, location, target, request, idle_timeout)
        except Refusal as refusal:
            answer = refusal_answer(refusal)
        if isinstance(answer, Response) and negotiation.prefers_yaml(request.headers.get("accept", "")):
            answer = in_yaml(answer)
        self.audit.record(call, 0 if fault.lose_answer else answer.status)
        if fault.lose_answer:
            raise ConnectionLost(request.method, request.url, "the connection ended before the answer")
        return answer

    def port_forward(self, user: str, request: Request) -> PortForward:
        """Forwarding of ports of the pod that a request names. Raises Refusal."""
        location = locate(request.url)
        target = resolve(location.path, self._world.registry.kinds)
        call = _call(user, request, location, target)
        if refusal := (self.faults(call) or Fault()).refusal:
            self.audit.record(call, refusal.code)
            raise refusal
        stored = self.storage.get(target.kind.key, target.key) if target is not None else None
        if target is None or stored is None:
            raise not_found(PODS, target.name if target is not None else "")
        self.audit.record(call, 101)
        tree = stored.tree()
        if not tree["spec"].get("nodeName"):
            raise bad_request(f"pod {target.name} does not have a host assigned")
        status = tree.get("status") or {}
        if status.get("phase") != "Running":
            phase = status.get("phase", "Pending")
            raise bad_request(f"unable to forward port because pod is not running. Current status={phase}")
        return PortForward(target.name, status["podIP"], self.dial)

    def disconnect(self) -> None:
        """Break all open watches, like a restart of the server."""
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            stream.disconnect()

    def snapshot(self) -> Snapshot:
        """The current state."""
        return self.storage.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Return to the state of a snapshot; open watches expire."""
        with self.storage.lock:
            self.storage.restore(snapshot)
            self._api.reload()

    def resume(self, journal: Journal) -> None:
        """Before the first request: continue from the state in a journal, if any, and keep all that follows there.

        A definition that is here already replaces the one of its name in the journal.
        """
        definitions = self._world.registry.of(CUSTOM_RESOURCE_DEFINITIONS).key
        with self.storage.lock:
            if (kept := journal.kept()).objects:
                own = {stored.key: stored for stored in self.storage.objects(definitions)}
                objects = {**kept.objects, definitions: {**kept.objects.get(definitions, {}), **own}}
                self.restore(Snapshot(kept.version, objects))
            self.storage.keep(journal)

    def load(self, resource: Resource, tree: Json) -> None:
        """Store an object as it is, with UID, generation and status, e.g. one that another API server returned."""
        kind = self._world.registry.of(resource)
        self.storage.write(kind.key, {"apiVersion": resource.api_version, "kind": resource.kind} | tree, kind.fields)

    def _strike(self, call: Call, fault: Fault) -> None:
        if fault.delay:
            self._pause(fault.delay)
        if fault.lose_request:
            self.audit.record(call, 0)
            raise ConnectionLost(call.request.method, call.request.url, "the connection ended before the request")

    def _pass_time(self, seconds: float) -> None:
        condition = threading.Condition()
        end = self._clock.now() + seconds
        with condition:
            while (remaining := end - self._clock.now()) > 0:
                self._clock.wait(condition, remaining)

    def _answer(
        self, call: Call, location: Location, target: Target | None, request: Request, idle_timeout: float | None
    ) -> Response | Streamed:
        if target is None and (own := self.beside.get(location.path)):
            return own(request)
        if target is None:
            return discovery.answer(self._world.registry, location.path, request)
        if target.subresource in pod_logs.IN_CONTAINERS:
            raise pod_logs.refuse(target)
        if target.subresource == "log" and request.method == "GET":
            return pod_logs.answer(self._world, target, location.query, self.find_output)
        ask = Ask(call.verb, target, location.query, request, idle_timeout)
        if call.verb != "watch":
            return self._api.answer(ask)
        stream = self._api.watch(ask, self._forget)
        with self._lock:
            self._streams.add(stream)
        return stream

    def _forget(self, stream: WatchStream) -> None:
        with self._lock:
            self._streams.discard(stream)

    def _create_namespace(self, name: str) -> None:
        body = f'{{"metadata":{{"name":"{name}"}}}}'.encode()
        self.handle(_ROOT, Request("POST", "/api/v1/namespaces", {}, body))


class WholeBody:
    """A complete answer as a stream."""

    def __init__(self, response: Response) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    def __iter__(self) -> Iterator[bytes]:
        """The body in one chunk."""
        yield self._response.body

    def abort(self) -> None: ...

    def close(self) -> None: ...


def _call(user: str, request: Request, location: Location, target: Target | None) -> Call:
    if target is None:
        return Call(user, request.method.lower(), "", "", "", location.path, request)
    verb = verb_of(request.method, target, location.query)
    return Call(user, verb, target.kind.key, target.subresource, target.namespace, target.name, request)
