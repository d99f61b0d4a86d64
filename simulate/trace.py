"""What happened in a run, in order: for the hash by which runs are compared, and for people.

A line of a readable trace says when, who, in which sync and stage, what was asked, and what came of it.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ports.transport import Response
from simulate.calls import Call
from simulate.write_traces import WriteTrace

_SHOWN = 240
"""Characters of a body that a line shows."""

Show = Callable[[str], None]
"""Takes one line of a readable trace."""


class Trace:
    """Hashes every exchange; shows the writes, and what else happens, to who wants to read it."""

    def __init__(self, show: Show | None = None) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._show = show
        self._writes: WriteTrace | None = None

    @property
    def digest(self) -> str:
        """The hash of everything so far."""
        return self._hash.hexdigest()

    def show(self, show: Show | None) -> None:
        """From now on, show lines to somebody, or to nobody."""
        self._show = show

    def collect(self) -> Sequence[str]:
        """From now on, collect all writes, events among them, in the sequence that is returned."""
        self._writes = WriteTrace()
        return self._writes.writes

    def exchange(self, at: float, call: Call, answer: Response | None, number: int, note: str = "") -> None:
        """A request of an operator and its answer, None when it was lost; `number` counts writes."""
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
        """An edit, a fault, a crash."""
        self._mix(at, who, what)
        self._line(at, who, what)

    def mix(self, *parts: object) -> None:
        """Let the hash depend on something that no line shows."""
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
    """Why the operator waits, where a request says so."""
    if call.target.resource != "tidbclusters.pingcap.com" or not call.request.body:
        return []
    status: Any = msgspec.json.decode(call.request.body).get("status") or {}
    return [
        f"{each.get('type')}={each.get('status')} {each.get('reason')}: {each.get('message')}"
        for each in status.get("conditions") or ()
    ]
