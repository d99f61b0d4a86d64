"""The subresource `pods/log`, which the server gets from the kubelet, and refusals of the other ones in containers."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from kube.objects import Json
from ports.clock import Clock
from ports.transport import Response
from sandbox.apiserver.answers import bytes_answer
from sandbox.apiserver.refusals import Refusal, bad_request, not_found
from sandbox.apiserver.routes import Target, number
from sandbox.apiserver.world import World

IN_CONTAINERS = ("attach", "exec", "portforward", "proxy")
"""Subresources that lead into a container."""
_FORWARDED = "portforward"

_TEXT = "text/plain"
_POLL = 0.1
"""Seconds between two checks for new lines."""


class PrintedLine(Protocol):
    """A line of a container; the number counts from 1."""

    @property
    def number(self) -> int:
        """The number of the line in the container's output."""

    @property
    def time(self) -> datetime:
        """The time of the line."""

    @property
    def text(self) -> str:
        """The line without its end."""


class Printed(Protocol):
    """The output of one run of a container."""

    @property
    def ended(self) -> bool:
        """True if no more lines will follow."""

    def after(self, number: int) -> Sequence[PrintedLine]:
        """The lines after the given number."""


FindOutput = Callable[[str, str, bool], Printed | None]
"""Finds the output of a container by its pod's UID and its name, from its last run or the previous one."""


def no_output(_uid: str, _container: str, _previous: bool) -> Printed | None:
    """The output on a server without a kubelet: none."""
    return None


def refuse(target: Target) -> Refusal:
    """The refusal of a subresource that leads into a container."""
    if target.subresource == _FORWARDED:
        message = "ports are forwarded over SPDY/3.1 alone, with which kubectl continues by itself"
        return Refusal(501, "NotImplemented", message, {})
    instead = (
        "`kubectl logs` shows what they print; `kubectl port-forward`, and the HTTP proxy in the sandbox's `env`, lead "
        "to every port of a pod"
    )
    message = f"containers are simulated here, and pods/{target.subresource} is not implemented: {instead}"
    return Refusal(501, "NotImplemented", message, {})


def answer(world: World, target: Target, query: Mapping[str, str], find: FindOutput) -> "Response | FollowedLog":
    """The output of a container as text; with `follow`, also its further output. Raises Refusal (400, 404)."""
    stored = world.storage.get(target.kind.key, target.key)
    if stored is None:
        raise not_found(target.kind.resource, target.name)
    container = _container(stored.tree(), target.name, query.get("container", ""))
    previous = _is_set(query, "previous")
    printed = find(stored.uid, container, previous)
    if printed is None:
        raise _nothing_yet(stored.tree(), target.name, container, previous=previous)
    shown = Shown(query, world.clock)
    if _is_set(query, "follow"):
        return FollowedLog(printed, shown, world.clock)
    return bytes_answer(shown.first(printed)[0], content_type=_TEXT)


def _container(pod: Json, name: str, asked: str) -> str:
    spec = pod["spec"]
    names: list[str] = [each["name"] for kind in ("containers", "initContainers") for each in spec.get(kind) or ()]
    if asked:
        if asked not in names:
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    if len(spec["containers"]) > 1:
        known = " ".join(names)
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{known}]")
    return names[0]


def _nothing_yet(pod: Json, name: str, container: str, *, previous: bool) -> Refusal:
    if previous:
        return bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
    states = (pod.get("status") or {}).get("containerStatuses") or ()
    waiting = next(((each.get("state") or {}).get("waiting") or {} for each in states if each["name"] == container), {})
    reason = waiting.get("reason", "ContainerCreating")
    return bad_request(f'container "{container}" in pod "{name}" is waiting to start: {reason}')


def _is_set(query: Mapping[str, str], name: str) -> bool:
    return query.get(name, "") in ("true", "1")


class Shown:
    """The selection and the format of log lines."""

    def __init__(self, query: Mapping[str, str], clock: Clock) -> None:
        """Raises Refusal (400)."""
        self._stamps = _is_set(query, "timestamps")
        self._last = number(query, "tailLines", -1)
        self._most = number(query, "limitBytes", -1)
        seconds = number(query, "sinceSeconds", -1)
        self._since = clock.wall() - timedelta(seconds=seconds) if seconds >= 0 else None
        if text := query.get("sinceTime"):
            try:
                self._since = datetime.fromisoformat(text)
            except ValueError:
                raise bad_request(f'sinceTime: Invalid value: "{text}": must be a time in RFC 3339') from None

    def first(self, printed: Printed) -> tuple[bytes, int]:
        """The existing output, and the number of its last line."""
        lines = printed.after(0)
        number_ = lines[-1].number if lines else 0
        chosen = [line for line in lines if self._since is None or line.time >= self._since]
        if self._last >= 0:
            chosen = chosen[len(chosen) - min(self._last, len(chosen)) :]
        text = self.rendered(chosen)
        return (text[: self._most] if self._most >= 0 else text), number_

    def rendered(self, lines: Sequence[PrintedLine]) -> bytes:
        """The lines in the requested format."""
        return "".join(f"{self._stamp(line)}{line.text}\n" for line in lines).encode(errors="replace")

    def _stamp(self, line: PrintedLine) -> str:
        return f"{line.time.isoformat().replace('+00:00', 'Z')} " if self._stamps else ""


class FollowedLog:
    """A log that continues until its container ends or the reader disconnects; iterate in one thread."""

    def __init__(self, printed: Printed, shown: Shown, clock: Clock) -> None:
        self._printed = printed
        self._shown = shown
        self._clock = clock
        self._condition = threading.Condition()
        self._aborted = False

    @property
    def status(self) -> int:
        """200: a refusal is answered before the stream exists."""
        return 200

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of plain text."""
        return {"content-type": _TEXT}

    def __iter__(self) -> Iterator[bytes]:
        """Lines; one chunk may contain several."""
        text, last = self._shown.first(self._printed)
        if text:
            yield text
        while not self._aborted:
            ended = self._printed.ended
            if lines := self._printed.after(last):
                last = lines[-1].number
                yield self._shown.rendered(lines)
            if ended:
                return
            with self._condition:
                if not self._aborted:
                    self._clock.wait(self._condition, _POLL)

    def abort(self) -> None:
        """End the stream from another thread."""
        with self._condition:
            self._aborted = True
            self._condition.notify_all()

    close = disconnect = abort
