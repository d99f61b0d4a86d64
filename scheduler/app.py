"""The extender's HTTP API as a function from request to response (2.3), for the server and the sandbox."""

from collections.abc import Callable
from urllib.parse import urlsplit

import structlog

from kube.client import Client
from kube.events import EventRecorder
from ports.clock import Clock
from ports.randomness import Randomness
from ports.transport import Request, Response, Transport
from scheduler.cluster_state import ClusterState
from scheduler.extender import Extender, Unanswerable
from scheduler.metrics import Metrics
from scheduler.protocol import (
    Answer,
    BadQuestion,
    read_preemption,
    read_question,
    write_answer,
    write_error,
    write_preemption,
    write_priorities,
)

_log = structlog.get_logger(__name__)

PREFIX = "/scheduler"

COMPONENT = "tidb-scheduler"
"""The source component of its events."""

Verb = Callable[[bytes | None], bytes]


class App:
    """Answers POST `/scheduler/filter`, `/scheduler/preempt` and `/scheduler/prioritize`. Thread-safe."""

    def __init__(self, extender: Extender, clock: Clock, metrics: Metrics | None = None) -> None:
        self._extender = extender
        self._clock = clock
        self._metrics = metrics or Metrics()
        self._verbs: dict[str, Verb] = {
            "filter": self._filter,
            "preempt": self._preempt,
            "prioritize": lambda body: write_priorities(read_question(body).names),
        }

    def handle(self, request: Request) -> Response:
        """Return 200 with a result, 400 for a malformed request, 500 if a preemption cannot be answered."""
        prefix, _, name = urlsplit(request.url).path.rpartition("/")
        verb = self._verbs.get(name) if prefix == PREFIX else None
        if verb is None:
            return _json(404, write_error(404, f"try one of {', '.join(f'{PREFIX}/{each}' for each in self._verbs)}"))
        if request.method != "POST":
            return _json(405, write_error(405, f"{request.method} is not supported; POST is"))
        started = self._clock.now()
        response = _respond(name, verb, request.body)
        self._metrics.observe(name, response.status, self._clock.now() - started)
        return response

    def _filter(self, body: bytes | None) -> bytes:
        question = read_question(body)
        try:
            answer = self._extender.filter(question)
        except Unanswerable as error:
            # kube-scheduler copies this text into the pod's event, unlike the text of a 500
            answer = Answer(error=str(error))
        _tell(question.pod.key, answer)
        if not answer.kept:
            self._metrics.refused(question.pod)
        return write_answer(question, answer)

    def _preempt(self, body: bytes | None) -> bytes:
        return write_preemption(self._extender.preempt(read_preemption(body)))


def make_handler(kubernetes: Transport, clock: Clock, randomness: Randomness) -> Callable[[Request], Response]:
    """The extender in this process: `kubernetes` uses the identity of its pod; events are sent with each answer."""
    client = Client(kubernetes, user_agent=COMPONENT)
    recorder = EventRecorder(client, clock, randomness, COMPONENT)
    app = App(Extender(ClusterState(client), recorder, clock), clock)

    def handle(request: Request) -> Response:
        response = app.handle(request)
        recorder.send_queued()
        return response

    return handle


def _respond(name: str, verb: Verb, body: bytes | None) -> Response:
    try:
        return _json(200, verb(body))
    except BadQuestion as error:
        return _json(400, write_error(400, f"unable to read request body: {error}"))
    except Unanswerable as error:
        return _json(500, write_error(500, f"unable to {name} nodes: {error}"))


def _tell(pod: str, answer: Answer) -> None:
    if answer.error:
        _log.warning("cannot schedule", pod=pod, cause=answer.error)
    elif not answer.kept:
        _log.info("pod must wait", pod=pod, reasons=sorted(set(answer.refused.values())))
    else:
        _log.debug("nodes chosen", pod=pod, nodes=len(answer.kept), of=len(answer.kept) + len(answer.refused))


def _json(status: int, body: bytes) -> Response:
    return Response(status, {"content-type": "application/json"}, body)
