"""The events of a run in order: for the hash by which runs are compared, and for readers.

A line of a readable trace has time, actor, sync and stage, request and result.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ports.transport import Response
from simulate.engine.calls import Call
from simulate.engine.write_traces import WriteTrace

_SHOWN = 240
"""The maximum number of characters of a body in a line."""

Show = Callable[[str], None]
"""Receives a line of a readable trace."""


class Trace:
    """Hashes every exchange; passes writes and other events to a reader."""

    def __init__(self, show: Show | None = None) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._show = show
        self._writes: WriteTrace | None = None

    @property
    def digest(self) -> str:
        """The hash of everything so far."""
        return self._hash.hexdigest()

    def show(self, show: Show | None) -> None:
        """Pass lines to `show` from now on, or to no reader."""
        self._show = show

    def collect(self) -> Sequence[str]:
        """Collect all writes, including events, in the returned sequence from now on."""
        self._writes = WriteTrace()
        return self._writes.writes

    def exchange(self, at: float, call: Call, answer: Response | None, number: int, note: str = "") -> None:
        """Record a request of an operator and its answer (None if it was lost); `number` counts writes."""
        request = call.request
        self._mix(at, call.actor, request.method, request.url, request.body or b"", answer.status if answer else 0)
        if answer is not None:
            self._mix(answer.body)
        if self._writes is not None:
            self._writes.note(call)
        if self._show is None or not call.is_write:
            return
        came = str(answer.status) if answer else "no answer"
        where = f"sync {call.sync} {call.key} {call.stage or '-'}"
        self._line(at, call.actor, f"[{number}] {where}: {call} -> {came}{note and f' ({note})'}")
        self._show(f"{'':14}{_shortened(request.body)}")
        for sentence in _conditions(call):
            self._show(f"{'':14}{sentence}")

    def happened(self, at: float, who: str, what: str) -> None:
        """Record an edit, a fault or a crash."""
        self._mix(at, who, what)
        self._line(at, who, what)

    def mix(self, *parts: object) -> None:
        """Add a value to the hash that no line shows."""
        self._mix(*parts)

    def _mix(self, *parts: object) -> None:
        for part in parts:
            self._hash.update(part if isinstance(part, bytes) else str(part).encode())
            self._hash.update(b"\0")

    def _line(self, at: float, who: str, what: str) -> None:
        if self._show is not None:
            self._show(f"{at:10.3f} s  {who:<10} {what}")


def _shortened(body: bytes | None) -> str:
    text = (body or b"").decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


def _conditions(call: Call) -> list[str]:
    """The operator's reasons for waiting in a request."""
    if call.target.resource != "tidbclusters.pingcap.com" or not call.request.body:
        return []
    status: Any = msgspec.json.decode(call.request.body).get("status") or {}
    return [
        f"{condition.get('type')}={condition.get('status')} {condition.get('reason')}: {condition.get('message')}"
        for condition in status.get("conditions") or ()
    ]
