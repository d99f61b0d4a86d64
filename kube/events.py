"""Kubernetes Events, which inform users (informers-workqueue.md 20).

`event` never blocks and never fails; one thread sends. Events are best effort: one that the server refuses is dropped.
Creations, patches and deletions for one object within seconds become one event.
"""

import contextlib
import math
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from kube.client import Client
from kube.errors import AlreadyExists, ApiError, NotFound
from kube.event_correlation import Correlator, Happening, NewEvent, ObjectReference, RepeatedEvent, together
from kube.objects import Json, Object
from kube.resources import EVENTS
from ports import effects
from ports.clock import Clock
from ports.foreign_text import printable
from ports.lazy_log import get_logger
from ports.observation import is_observing
from ports.product import EVENT_SOURCE
from ports.randomness import Randomness
from ports.stopping import Stop
from ports.transport import TransportError

_log = get_logger(__name__)

NORMAL = "Normal"
WARNING = "Warning"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_QUEUED = 1000
_TRIES = 12
_TRY_AGAIN = 10.0
_FLUSH = 2.0
_JOINED = frozenset({"SuccessfulCreate", "SuccessfulPatch", "SuccessfulDelete"})
"""The reasons of routine events that are joined."""

_COLLECT = 3.0
"""Seconds for which events about an object are collected."""
_COLLECT_JOINED = 10.0
"""Seconds to collect events if all may be joined: a cluster's objects are created in three batches."""


class EventRecorder:
    """Sends events from its own thread between `start` and `stop`."""

    def __init__(self, client: Client, clock: Clock, randomness: Randomness, component: str = EVENT_SOURCE) -> None:
        """Send through `client`, which should have no fence, so that a leader that stops can report it.

        `component` is the source component of the events.
        """
        self._client = client
        self._clock = clock
        self._randomness = randomness
        self._component = component
        self._condition = threading.Condition()
        self._waiting = EventBatches(_JOINED)
        self._sending = 0
        self._stopping = False
        self._give_up = Stop()
        self._correlator = Correlator()
        self._last_name = 0
        self._thread = threading.Thread(target=self._run, name="events")

    def start(self) -> None:
        """Start to send. Call it once."""
        self._thread.start()

    def event(self, about: Object | ObjectReference, type: str, reason: str, message: str) -> None:  # noqa: A002
        """Record that `reason` happened to `about`. Dropped with a log line if 1000 events are waiting (EV-1).

        An operator that only observes records nothing.
        """
        if is_observing():
            return
        effects.note()
        reference = about if isinstance(about, ObjectReference) else reference_to(about)
        happening = Happening(reference, type, reason, printable(message, lines=True), self._clock.wall())
        with self._condition:
            accepted = self._unsent() < _QUEUED and not self._stopping
            if accepted:
                self._waiting.add(happening, self._clock.now())
                self._condition.notify()
        if not accepted:
            _log.warning("event dropped", kind=reference.kind, name=reference.name, reason=reason, message=message)

    def stop(self, timeout: float = _FLUSH) -> bool:
        """Send the queued events for at most `timeout` seconds, then end; True if all were sent (EV-5)."""
        with self._condition:
            self._stopping = True
            self._condition.notify()
            deadline = self._clock.now() + timeout
            while self._thread.is_alive() and self._unsent() and (left := deadline - self._clock.now()) > 0:
                self._clock.wait(self._condition, left)
            unsent = self._unsent()
            self._waiting.take()
        self._give_up.set()
        if unsent:
            _log.warning("events lost at the end", count=unsent)
        return unsent == 0

    def send_queued(self) -> bool:
        """Send the queued events in the calling thread, for a simulated process without `start`.

        True if there were any.
        """
        batch = self._waiting.take()
        self._send_batch(batch)
        return bool(batch)

    def _run(self) -> None:
        while batch := self._next():
            self._send_batch(batch)

    def _send_batch(self, batch: Sequence[Happening]) -> None:
        for happening in together(batch, _JOINED):
            self._handle(happening)
        with self._condition:
            self._sending = 0
            self._condition.notify_all()

    def _next(self) -> Sequence[Happening]:
        """Wait for events that are due and return them; at the end return the rest, then nothing."""
        with self._condition:
            while not self._stopping and (left := self._waiting.due() - self._clock.now()) > 0:
                self._clock.wait(self._condition, left if left < math.inf else None)
            batch = self._waiting.take(math.inf if self._stopping else self._clock.now())
            self._sending = len(batch)
            return batch

    def _unsent(self) -> int:
        """The number of events that are queued or being sent."""
        return len(self._waiting) + self._sending

    def _handle(self, happening: Happening) -> None:
        """Correlate one event and send the result."""
        event = self._correlator.correlate(happening, self._clock.now())
        if event is None:
            _log.debug("event dropped as spam", kind=happening.about.kind, name=happening.about.name)
            return
        for attempt in range(_TRIES):
            try:
                self._send(event)
            except ApiError as error:
                self._log_refusal(event, error)
            except TransportError as error:
                if self._pause(attempt):
                    continue
                _log.warning("event lost", reason=happening.reason, message=happening.message, cause=str(error))
            return

    def _send(self, event: NewEvent | RepeatedEvent) -> None:
        if isinstance(event, RepeatedEvent):
            with contextlib.suppress(NotFound):
                self._patch(event)
                return
        self._create(event)

    def _patch(self, event: RepeatedEvent) -> None:
        change = {"count": event.count, "lastTimestamp": _seconds(event.happening.at), "message": event.message}
        self._client.patch(EVENTS, event.name, _namespace(event), change)
        self._correlator.remember(event.key, event.name, event.first, event.count)

    def _create(self, event: NewEvent | RepeatedEvent) -> None:
        happening = event.happening
        name = self._fresh_name(happening)
        first = event.first if isinstance(event, RepeatedEvent) else happening.at
        count = event.count if isinstance(event, RepeatedEvent) else 1
        body: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": _namespace(event)},
            "involvedObject": _involved(happening.about),
            "type": happening.type,
            "reason": happening.reason,
            "message": event.message,
            "count": count,
            "firstTimestamp": _seconds(first),
            "lastTimestamp": _seconds(happening.at),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
        self._client.create(EVENTS, body, _namespace(event))
        self._correlator.remember(event.key, name, first, count)

    def _fresh_name(self, happening: Happening) -> str:
        """A name for a new event (EV-2); simultaneous events get different names."""
        nanoseconds = (happening.at - _EPOCH) // _MICROSECOND * 1000
        self._last_name = max(self._last_name + 1, nanoseconds)
        return f"{happening.about.name}.{self._last_name:x}"

    def _pause(self, attempt: int) -> bool:
        """Wait before the next attempt; False if there is none (EV-4)."""
        if attempt + 1 == _TRIES:
            return False
        seconds = self._randomness.uniform(0, _TRY_AGAIN) if attempt == 0 else _TRY_AGAIN
        return not self._give_up.wait(self._clock, seconds)

    def _log_refusal(self, event: NewEvent | RepeatedEvent, error: ApiError) -> None:
        expected = isinstance(error, AlreadyExists) or any(
            cause.reason == "NamespaceTerminating" for cause in error.details.causes
        )
        log = _log.debug if expected else _log.warning
        log("event refused", reason=event.happening.reason, message=event.message, cause=str(error))


def reference_to(about: Object) -> ObjectReference:
    """The reference to an object in an event."""
    meta = about.metadata
    return ObjectReference(about.api_version, about.kind, meta.namespace, meta.name, meta.uid, meta.resource_version)


def _involved(about: ObjectReference) -> Json:
    fields = {
        "apiVersion": about.api_version,
        "kind": about.kind,
        "namespace": about.namespace,
        "name": about.name,
        "uid": about.uid,
        "resourceVersion": about.resource_version,
    }
    return {name: value for name, value in fields.items() if value}


def _namespace(event: NewEvent | RepeatedEvent) -> str:
    """The namespace of an event; events about cluster-scoped objects are in `default`."""
    return event.happening.about.namespace or "default"


def _seconds(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class _Batch:
    due: float = math.inf
    happenings: list[Happening] = field(default_factory=list)


class EventBatches:
    """Events that are not sent yet, by object: those about one object within seconds go together (EV-3).

    Not thread-safe.
    """

    def __init__(self, joined: Collection[str]) -> None:
        """`joined` are the reasons whose events may be joined and sent later."""
        self._joined = joined
        self._batches: dict[tuple[str, ...], _Batch] = {}

    def add(self, happening: Happening, now: float) -> None:
        """Add an event at `now` (monotonic seconds). An event that cannot be joined sends the waiting ones with it."""
        batch = self._batches.setdefault(happening.about.identity, _Batch())
        batch.due = min(batch.due, now + (_COLLECT_JOINED if happening.reason in self._joined else _COLLECT))
        batch.happenings.append(happening)

    def due(self) -> float:
        """When the next events are due; infinity if none waits."""
        return min((batch.due for batch in self._batches.values()), default=math.inf)

    def take(self, now: float = math.inf) -> list[Happening]:
        """Remove and return the events that are due at `now`, in order for each object."""
        due = [key for key, batch in self._batches.items() if batch.due <= now]
        return [happening for key in due for happening in self._batches.pop(key).happenings]

    def __len__(self) -> int:
        return sum(len(batch.happenings) for batch in self._batches.values())
