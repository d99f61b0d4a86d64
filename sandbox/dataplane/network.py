"""The network: resolves names to running processes and injects faults on the way (dataplane-apis.md 1, 14)."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Protocol
from urllib.parse import urlsplit

from ports.clock import Clock
from ports.randomness import Randomness
from ports.transport import (
    ConnectionLost,
    ConnectionRefused,
    Request,
    RequestTimeout,
    Response,
    TlsError,
    TransportError,
)
from sandbox.dataplane.faults import Fault, Trouble
from sandbox.dataplane.interconnect import Interconnect
from sandbox.dataplane.lies import with_lie
from sandbox.dataplane.monitoring import handled
from sandbox.dataplane.output import Output
from sandbox.dataplane.processes import Answer, Launch, Process, Waiting, text
from sandbox.dataplane.tls import NOBODY, PROVEN, Certificate, Handshakes, ServerSide

_STEP = 0.1
"""Seconds between two checks of a provisional answer."""
_PEERS = "(peers)"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_CUT_OFF = Fault(Trouble.BLACK_HOLE)
_HTTP_TO_HTTPS = text(400, "Client sent an HTTP request to an HTTPS server.\n")
_IDENTIFIERS = (
    (re.compile(r"/name/[^/]+$"), "/name/{name}"),
    (re.compile(r"/transfer/[^/]+$"), "/transfer/{name}"),
    (re.compile(r"/(new|verify)/[^/]+"), r"/\1/{address}"),
    (re.compile(r"-scheduler-\d+$"), "-scheduler-{id}"),
    (re.compile(r"/\d+(?=/|$)"), "/{id}"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a name: a pod and one of its ports."""

    pod_uid: str
    port: int


class Directory(Protocol):
    """The cluster's DNS and service proxies."""

    def resolve(self, host: str, port: int, namespace: str) -> list[Target]:
        """The targets of `host:port` for a pod of `namespace`; empty if the name or port is unknown."""

    def pods(self, host: str, port: int) -> list[Target]:
        """The targets of a name for another Kubernetes: single pods, not Services with an address."""

    def addresses(self, host: str, namespace: str) -> list[str]:
        """DNS addresses of a name for a pod of `namespace`."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The sender of a request and its certificate. An empty pod is outside of all pods, e.g. the operator."""

    namespace: str = ""
    pod: str = ""
    certificate: Certificate | None = field(default=None, compare=False, repr=False)
    """The sender's side of TLS, or None."""
    domain: str = ""
    """The domain of the sender's Kubernetes."""

    @classmethod
    def of(cls, launch: Launch) -> "Origin":
        """The origin of a program's requests."""
        return cls(launch.namespace, launch.pod, launch.certificate, launch.domain)

    def __str__(self) -> str:
        """`namespace/pod`, for the globs of faults."""
        return f"{self.namespace}/{self.pod}"


@dataclass(slots=True, eq=False)
class Running:
    """A process and its launch."""

    launch: Launch
    process: Process
    output: Output
    hung: bool = False
    behind: Waiting | None = None
    """The script that waits for the process, unless it was replaced by it."""
    announced: frozenset[int] = frozenset()
    """The ports that it has announced in its log."""
    due: float = float("inf")
    """The clock time of its next due work, from its last step."""
    rests_until: float = float("-inf")
    """The clock time before which no step is needed, unless the process is woken."""

    @property
    def pod(self) -> str:
        """`namespace/pod`."""
        return f"{self.launch.namespace}/{self.launch.pod}"

    @property
    def concurrent(self) -> bool:
        """True if requests are handled outside the data plane's lock, because the handler itself uses the network."""
        return bool(getattr(self.process, "concurrent", False))

    @property
    def is_real(self) -> bool:
        """True for a process of this machine, which performs TLS handshakes itself."""
        return hasattr(self.process, "exchange")


@lru_cache(maxsize=10_000)
def path_class(path: str) -> str:
    """`/pd/api/v1/store/4/label` becomes `/pd/api/v1/store/{id}/label`."""
    for pattern, name in _IDENTIFIERS:
        path = pattern.sub(name, path)
    return path


@dataclass(frozen=True, slots=True)
class Count:
    """The key by which requests are counted."""

    cluster: str
    method: str
    path_class: str
    user_agent: str


@dataclass(slots=True, eq=False)
class _Injected:
    """A fault and its state: the number of requests, and the answers that OLD repeats."""

    fault: Fault
    matched: int = 0
    answers: dict[str, Response] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Late:
    """A request that is still in transit when its sender has given up."""

    due: float
    origin: Origin
    running: Running
    port: int
    request: Request


class Network:
    """The data plane's network in one Kubernetes. Thread-safe.

    `domain` is the domain of this Kubernetes; `pause` lets the calling thread wait on the clock.
    """

    def __init__(
        self,
        clock: Clock,
        directory: Directory,
        randomness: Randomness,
        interconnect: Interconnect,
        domain: str,
        *,
        pause: Callable[[float], None],
        wake: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._directory = directory
        self._randomness = randomness
        self._interconnect = interconnect
        self.domain = domain
        self._lock = interconnect.lock
        self._pause = pause
        self._touched = interconnect.changed
        self.wake = wake
        """Called when a request may have changed a process, here or in another Kubernetes."""
        self._running: dict[str, list[Running]] = {}
        self._faults: list[_Injected] = []
        self._late: list[_Late] = []
        self._counts: Counter[Count] = Counter()
        self._handshakes = Handshakes(clock)
        interconnect.add(domain, self)

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Keeps the processes as they are."""
        return self._lock

    def pause(self, seconds: float) -> None:
        """Let the calling thread wait on the clock."""
        self._pause(seconds)

    def attach(self, running: Running) -> None:
        """Make a process reachable."""
        with self._lock:
            self._running.setdefault(running.launch.pod_uid, []).append(running)

    def detach(self, running: Running) -> None:
        """Remove a process. Idempotent."""
        with self._lock:
            left = [each for each in self._running.get(running.launch.pod_uid, []) if each is not running]
            if left:
                self._running[running.launch.pod_uid] = left
            else:
                self._running.pop(running.launch.pod_uid, None)

    def inject(self, fault: Fault) -> None:
        """Add a fault until it is healed."""
        with self._lock:
            self._faults.append(_Injected(fault))
        self._interconnect.disturbed()

    def heal(self, fault: Fault | None = None) -> None:
        """Remove a fault, or all."""
        with self._lock:
            self._faults = [] if fault is None else [each for each in self._faults if each.fault is not fault]
        self._interconnect.disturbed()

    def repeats_answers(self, target: str) -> bool:
        """True while a fault lets the servers of `target`, as the fault names them, repeat earlier answers."""
        return any(each.fault.trouble is Trouble.OLD and each.fault.target == target for each in self._faults)

    def cut_off(self, apart: bool = True) -> None:
        """A fault: separate this Kubernetes from all others until healed."""
        self._interconnect.cut_off(self.domain, apart)

    def counts(self) -> dict[Count, int]:
        """The number of HTTP requests so far, including those that a fault answered or dropped."""
        with self._lock:
            return dict(self._counts)

    def reset_counts(self) -> None:
        """Count from zero."""
        with self._lock:
            self._counts.clear()

    @property
    def disturbances(self) -> int:
        """See `Interconnect`: while it is unchanged, a running process is reachable by the same peers."""
        return self._interconnect.disturbances

    def connected(self, origin: Origin, running: Running, port: int, host: str = "") -> bool:
        """True if a process would answer a ping from `origin`, which knows it as `host`."""
        return (
            not running.hung
            and running.process.exit is None
            and running.process.listens(port)
            and self._severed(origin, running, port) is None
            and (running.is_real or not self.tls_failure(origin, running.launch, port, host))
        )

    def tls_failure(self, origin: Origin, launch: Launch, port: int, host: str = "") -> str:
        """Why `origin` and a process cannot agree on TLS or plain text; empty if they can."""
        return self._handshakes.failure(origin.certificate, launch.serves_tls(port), host)

    def handshake_failure(self, client: Certificate, server: ServerSide | None, host: str) -> str:
        """Why a client's TLS handshake with the server `host` fails; empty if it succeeds."""
        with self._lock:
            return self._handshakes.failure(client, server, host)

    def reachable(self, launch: Launch, process: Process, url: str, origin: Origin | None = None) -> bool:
        """True if `origin`, by default any pod of its namespace, can reach a process at `url`."""
        host, port = _address(url)
        with self._lock:
            running = self._behind(launch, process)
            asker = speaking(origin, url) if origin else Origin(launch.namespace, _PEERS, PROVEN, self.domain)
            return running is not None and self.connected(asker, running, port, host)

    def trusts(self, launch: Launch, url: str, other: Launch) -> bool:
        """True if a process and another one at `url` agree on TLS or plain text."""
        if launch.tls is None and other.tls is None and not url.startswith("https:"):
            return True
        host, port = _address(url)
        with self._lock:
            if self._interconnect.is_severed(launch.domain, other.domain):
                return False
            return not self.tls_failure(speaking(Origin.of(launch), url), other, port, host)

    def pass_on(self, request: Request, origin: Origin, launch: Launch, process: Process, url: str) -> Answer:
        """The answer of the process at `url` to a request that the process `origin` forwards."""
        host, port = _address(url)
        with self._lock:
            running = self._behind(launch, process)
            if running is None or not self.connected(speaking(origin, url), running, port, host):
                return Answer(Response(504, {}, b""), delay=float("inf"))
            answer = handled(process, launch, port, request)
            response = self._passed_on(origin, running, port, request, answer.response)
            return replace(
                answer, response=response, delay=answer.delay + self._slowness(origin, running, port, request)
            )

    def _passed_on(self, origin: Origin, running: Running, port: int, request: Request, response: Response) -> Response:
        """The answer that a process passes on; a liar's own answer is changed later."""
        path = urlsplit(request.url).path
        for injected in self._faults_between(origin, running):
            fault, asked = injected.fault, (str(origin), running.pod, port, request, path)
            if (
                fault.trouble is Trouble.LIE
                and fault.matches_request(*asked)
                and not fnmatchcase(str(origin), fault.target)
            ):
                injected.matched += 1
                return (
                    _spoiled(response, injected, request, running) if injected.matched % fault.every == 0 else response
                )
        return response

    def _behind(self, launch: Launch, process: Process) -> Running | None:
        there = (
            running for network in self._interconnect.networks(launch.domain) for running in network.of(launch.pod_uid)
        )
        return next((running for running in there if running.process is process), None)

    def _slowness(self, origin: Origin, running: Running, port: int, request: Request) -> float:
        path = urlsplit(request.url).path
        slow = (
            injected.fault
            for injected in self._faults_between(origin, running)
            if injected.fault.trouble is Trouble.SLOW
        )
        return sum(
            fault.seconds for fault in slow if fault.matches_request(str(origin), running.pod, port, request, path)
        )

    def find(self, url: str, origin: Origin) -> Running | None:
        """The process at a URL if `origin` can reach it: the way in which peers find each other."""
        with self._lock:
            host, port = _address(url)
            found = self._connect(host, port, origin)
            if found is None or not self.connected(speaking(origin, url), *found, host):
                return None
            return found[0]

    def server_side(self, authority: str) -> ServerSide | None:
        """The TLS side of the server at `host:port`; None without TLS, or without a server."""
        with self._lock:
            found = self._connect(*_address(authority), Origin())
            return found[0].launch.serves_tls(found[1]) if found else None

    def dial(self, host: str, port: int, origin: Origin, timeout: float) -> Running | None:
        """The process at an address; None after `timeout` seconds of silence. Raises ConnectionRefused."""
        with self._lock:
            found = self._connect(host, port, origin)
            if found is None:
                raise ConnectionRefused("CONNECT", f"{host}:{port}", f"no endpoint for {host}:{port}")
            running, target = found
            silent = running.hung or self._severed(origin, running, target) is not None
            if not silent and (running.process.exit is not None or not running.process.listens(target)):
                raise ConnectionRefused("CONNECT", f"{host}:{port}", "connection refused")
        if silent:
            self._pause(timeout)
        return None if silent else running

    def target(self, host: str, port: int, origin: Origin) -> tuple[Running, int] | None:
        """The process behind an address, and its port; None without one."""
        with self._lock:
            return self._connect(host, port, origin)

    def is_open(self, host: str, port: int, origin: Origin) -> bool:
        """True if a process accepts a connection immediately, whatever its protocol."""
        with self._lock:
            found = self._connect(host, port, origin)
            if found is None:
                return False
            running, target = found
            silent = running.hung or self._severed(origin, running, target) is not None
            return not silent and running.process.exit is None and running.process.listens(target)

    def listener(self, address: str, port: int) -> tuple[Running, int] | None:
        """A process that listens behind an address of this Kubernetes, even one that hangs; None without one."""
        with self._lock:
            targets = self._directory.resolve(address, port, "")
            pairs = [(running, target.port) for target in targets for running in self.of(target.pod_uid)]
            listening = [(running, port) for running, port in pairs if running.process.listens(port)]
            return listening[self._randomness.integer(0, len(listening) - 1)] if listening else None

    def addresses(self, host: str, origin: Origin) -> list[str]:
        """DNS addresses of a name for a pod."""
        with self._lock:
            elsewhere = self._interconnect.behind(host, self.domain)
            if elsewhere is None:
                return self._directory.addresses(host, origin.namespace)
            severed = self._interconnect.is_severed(self.domain, elsewhere.domain)
            return [] if severed else elsewhere.addresses(host, Origin())

    def reach(
        self, running: Running, port: int, request: Request, certificate: Certificate | None = None
    ) -> Answer | None:
        """Send a request from the process's own pod, like a probe; None if it hangs or does not listen.

        `certificate` is for the handshake with a real process.
        """
        with self._lock:
            if running.hung or running.process.exit is not None or not running.process.listens(port):
                return None
            if not running.concurrent:
                return handled(running.process, running.launch, port, request)
        try:
            return _exchanged(running, port, request, certificate)
        except TransportError:
            return None

    def deliver(self, request: Request, origin: Origin) -> Response:
        """Deliver a request to the process at its URL. Raises ConnectionRefused, RequestTimeout."""
        with self._lock:
            running, port, injected = self._routed(request, origin)
            fault = injected.fault if injected is not None else None
        slow = fault.seconds if fault is not None else 0.0
        if slow and not request.is_read:
            self._send_slowly(origin, running, port, request, slow)
            slow = 0.0
        with self._lock:
            answer = self._answer(request, origin, running, port, fault)
        if answer is None:
            answer = _exchanged(running, port, request, origin.certificate)
        if not request.is_read:
            self._touched()
        if answer.provisional:
            answer = self._wait_for_better(answer, running, port, request)
        delay = answer.delay + slow
        if delay > request.timeout:
            self._time_out(request)
        if delay > 0:
            self._pause(delay)
        return answer.response if injected is None else _spoiled(answer.response, injected, request, running)

    def _routed(self, request: Request, origin: Origin) -> tuple[Running, int, _Injected | None]:
        """The process at a request's URL, its port, and the fault for the request. Raises ConnectionRefused."""
        host, port = _address(request.url)
        found = self._connect(host, port, origin)
        if found is None:
            raise ConnectionRefused(request.method, request.url, f"no endpoint for {host}:{port}")
        running, port = found
        path = urlsplit(request.url).path
        self._count(running.launch.cluster, request, path)
        return running, port, self._matching(origin, running, port, request, path)

    def begin(self, request: Request, origin: Origin) -> Answer:
        """Deliver a request whose sender does not wait. The answer arrives after its delay, infinite in silence.

        Raises ConnectionRefused, ConnectionLost, TlsError.
        """
        with self._lock:
            running, port, injected = self._routed(request, origin)
            answer = self._answer(request, origin, running, port, injected.fault if injected else None)
        if answer is None:
            answer = _exchanged(running, port, request, origin.certificate)
        self._touched()
        if injected is None:
            return answer
        response = _spoiled(answer.response, injected, request, running)
        return Answer(response, answer.delay + injected.fault.seconds)

    def arrive(self) -> float | None:
        """Deliver the late requests that are due; return when the next one is."""
        with self._lock:
            now = self._clock.now()
            due = [late for late in self._late if late.due <= now]
            self._late = [late for late in self._late if late.due > now]
            for late in due:
                if self.connected(late.origin, late.running, late.port):
                    late.running.process.handle(late.port, late.request)
            return min((late.due for late in self._late), default=None)

    def _send_slowly(self, origin: Origin, running: Running, port: int, request: Request, seconds: float) -> None:
        """Deliver a write late, even if its sender has given up. Raises RequestTimeout."""
        if seconds > request.timeout:
            with self._lock:
                self._late.append(_Late(self._clock.now() + seconds, origin, running, port, request))
            self._touched()
            self._time_out(request)
        self._pause(seconds)

    def _answer(
        self, request: Request, origin: Origin, running: Running, port: int, fault: Fault | None
    ) -> Answer | None:
        """The answer, or None if the process must be called outside the lock. Raises ConnectionRefused, TlsError."""
        trouble = fault.trouble if fault is not None else None
        if trouble is Trouble.BLACK_HOLE or running.hung:
            return Answer(Response(504, {}, b""), delay=float("inf"))
        if trouble is Trouble.REFUSE or running.process.exit is not None or not running.process.listens(port):
            raise ConnectionRefused(request.method, request.url, "connection refused")
        if misunderstood := self._misunderstood(request, origin, running, port):
            return misunderstood
        if fault is not None and trouble is Trouble.ANSWER:
            return Answer(Response(fault.status, {"content-type": "application/json; charset=UTF-8"}, fault.body))
        return None if running.concurrent else handled(running.process, running.launch, port, request)

    def _misunderstood(self, request: Request, origin: Origin, running: Running, port: int) -> Answer | None:
        """The answer of a TLS server to plain HTTP, or None. Raises TlsError if the handshake fails."""
        if running.is_real:
            return None
        host, _ = _address(request.url)
        failure = self.tls_failure(speaking(origin, request.url), running.launch, port, host)
        if failure and request.url.startswith("https:"):
            raise TlsError(request.method, request.url, failure)
        return Answer(_HTTP_TO_HTTPS) if failure else None

    def _wait_for_better(self, answer: Answer, running: Running, port: int, request: Request) -> Answer:
        """Poll while the answer is provisional; the remaining wait becomes its delay."""
        waited = 0.0
        while answer.provisional and waited < min(answer.delay, request.timeout):
            self._pause(_STEP)
            waited += _STEP
            again = self.reach(running, port, request)
            if again is None:
                raise ConnectionRefused(request.method, request.url, f"{running.pod} went away")
            answer = again
        return Answer(answer.response, max(answer.delay - waited, 0.0) if answer.provisional else answer.delay)

    def _time_out(self, request: Request) -> TransportError:
        self._pause(request.timeout)
        raise RequestTimeout(request.method, request.url, f"no answer within {request.timeout} s")

    def of(self, pod_uid: str) -> list[Running]:
        """The processes of a pod."""
        return self._running.get(pod_uid, [])

    def pods(self, host: str, port: int) -> list[Target]:
        return self._directory.pods(host, port)

    def _connect(self, host: str, port: int, origin: Origin) -> tuple[Running, int] | None:
        elsewhere = self._interconnect.behind(host, self.domain)
        where = elsewhere or self
        targets = elsewhere.pods(host, port) if elsewhere else self._directory.resolve(host, port, origin.namespace)
        if not targets:
            return None
        target = targets[self._randomness.integer(0, len(targets) - 1)] if len(targets) > 1 else targets[0]
        processes = where.of(target.pod_uid)
        listening = [running for running in processes if running.process.listens(target.port)]
        if not listening:
            return (processes[0], target.port) if processes else None
        return listening[0], target.port

    def _severed(self, origin: Origin, running: Running, port: int) -> Fault | None:
        if self._interconnect.is_severed(origin.domain, running.launch.domain):
            return _CUT_OFF
        if origin.domain == running.launch.domain and (not self._faults or str(origin) == running.pod):
            return None
        faults = (injected.fault for injected in self._faults_between(origin, running))
        return next((fault for fault in faults if fault.matches_connection(str(origin), running.pod, port)), None)

    def _faults_between(self, origin: Origin, running: Running) -> Iterator[_Injected]:
        """The faults of both ends' networks."""
        for network in self._interconnect.networks(origin.domain, running.launch.domain):
            yield from network._faults

    def _matching(self, origin: Origin, running: Running, port: int, request: Request, path: str) -> _Injected | None:
        if self._interconnect.is_severed(origin.domain, running.launch.domain):
            return _Injected(_CUT_OFF)
        for injected in self._faults_between(origin, running):
            if injected.fault.matches_request(str(origin), running.pod, port, request, path):
                injected.matched += 1
                if injected.matched % injected.fault.every == 0:
                    return injected
        return None

    def _count(self, cluster: str, request: Request, path: str) -> None:
        agent = next((value for name, value in request.headers.items() if name.lower() == "user-agent"), "")
        self._counts[Count(cluster, request.method, path_class(path), agent)] += 1


def _exchanged(running: Running, port: int, request: Request, certificate: Certificate | None) -> Answer:
    """The answer of a process that is called outside the lock. Raises TransportError."""
    exchange = getattr(running.process, "exchange", None)
    if exchange is not None:
        answer: Answer = exchange(port, request, certificate)
        return answer
    return handled(running.process, running.launch, port, request)


def speaking(origin: Origin, url: str) -> Origin:
    """The origin with the protocol for `url`: TLS if the URL or its certificate says so."""
    scheme, has_scheme, _ = url.partition("://")
    if has_scheme and scheme != "https":
        return replace(origin, certificate=None) if origin.certificate is not None else origin
    return replace(origin, certificate=NOBODY) if has_scheme and origin.certificate is None else origin


def _spoiled(response: Response, injected: _Injected, request: Request, running: Running) -> Response:
    """The part of an answer that arrives under a fault. Raises ConnectionLost."""
    match injected.fault.trouble:
        case Trouble.TRUNCATE:
            return Response(response.status, response.headers, response.body[: len(response.body) // 2])
        case Trouble.OLD if request.is_read:
            parts = urlsplit(request.url)
            return injected.answers.setdefault(f"{parts.path}?{parts.query}", response)
        case Trouble.LIE:
            fault = injected.fault
            return with_lie(
                fault.lie, fault.about, running.launch.namespace, request, response, number=injected.matched
            )
        case Trouble.LOSE_ANSWER:
            raise ConnectionLost(request.method, request.url, "the connection ended before the answer")
    return response


@lru_cache(maxsize=10_000)
def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url if "//" in url else f"//{url}")
    return parts.hostname or "", parts.port or _DEFAULT_PORTS.get(parts.scheme, 80)
