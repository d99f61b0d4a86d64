"""DM's masters over HTTP (dataplane-apis.md 11). Any master forwards a request to the leader.

The body, not the status, reports success. Removing a master or worker takes it as the masters listed it: a LiveMaster
or LiveWorker, which only the reads here create (design.md 3.6, F5).
"""

from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from typing import Annotated, final
from urllib.parse import quote

import msgspec
from msgspec import Meta

from dataplane.addresses import Address
from dataplane.answers import MEMBERS, URLS, Name
from dataplane.calls import TIMEOUT, Caller
from dataplane.errors import Conflict, misread
from ports.foreign_text import shortened
from ports.side_by_side import InTurn, SideBySide, both
from ports.structs import UNREADABLE, decoder
from ports.transport import Response

_MEMBERS = "/apis/v1alpha1/members"
_LIVE_READ = object()
_IN_TURN = InTurn()

OFFLINE = "offline"
"""The stage of a worker that the masters have not heard from for a while."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveMaster:
    """A master as the masters listed it in this reconcile. Only `DMMasterClient.masters` creates one.

    `id` is decimal text, because 64-bit ids do not survive as JSON numbers.
    """

    name: str
    id: str
    alive: bool
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]
    maker: InitVar[object]

    def __post_init__(self, maker: object) -> None:
        """Raise TypeError unless a read of the masters creates the object."""
        if maker is not _LIVE_READ:
            raise TypeError("a LiveMaster comes from DMMasterClient.masters, which asks the masters")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWorker:
    """A worker as the masters listed it in this reconcile. Only `DMMasterClient.workers` creates one.

    `stage` is free, bound, relay or offline; `source` is the source that it replicates, or empty.
    """

    name: str
    address: str
    stage: str
    source: str
    maker: InitVar[object]

    def __post_init__(self, maker: object) -> None:
        """Raise TypeError unless a read of the masters creates the object."""
        if maker is not _LIVE_READ:
            raise TypeError("a LiveWorker comes from DMMasterClient.workers, which asks the masters")


class DMMasterClient:
    """A master, or the Service in front of all masters. Thread-safe."""

    def __init__(self, caller: Caller) -> None:
        """A client of the master that `caller` reaches."""
        self._call = caller

    @property
    def base_url(self) -> Address:
        """The URL that this client sends requests to."""
        return self._call.base_url

    def masters(self, timeout: float = TIMEOUT) -> tuple[LiveMaster, ...]:
        """All masters. Raises Unavailable, ApiError; MalformedAnswer for an empty list, which lacks the answering
        master itself.
        """
        found = self._list("master", timeout).master
        masters = (found.masters if found else None) or ()
        if not masters:
            raise self._call.malformed(f"{_MEMBERS}?master=true", "malformed answer: it lists no master")
        return tuple(
            LiveMaster(
                name=master.name,
                id=master.member_id,
                alive=master.alive,
                peer_urls=tuple(master.peer_urls or ()),
                client_urls=tuple(master.client_urls or ()),
                maker=_LIVE_READ,
            )
            for master in masters
        )

    def led_masters(self, side_by_side: SideBySide = _IN_TURN) -> tuple[str, tuple[LiveMaster, ...]]:
        """The name of the leader (empty if there is none) and all masters, read concurrently.

        Raises Unavailable, ApiError; MalformedAnswer for a list that lacks the leader.
        """
        leader, masters = both(side_by_side, self.leader, self.masters)
        if leader and all(master.name != leader for master in masters):
            what = f"malformed answer: it lists {len(masters)} masters, and not the one that leads"
            raise self._call.malformed(f"{_MEMBERS}?master=true", what)
        return leader, masters

    def workers(self) -> tuple[LiveWorker, ...]:
        """All workers that ever registered and have not been removed. Raises Unavailable, ApiError."""
        workers = self._list("worker").worker
        return tuple(
            LiveWorker(
                name=worker.name, address=worker.addr, stage=worker.stage, source=worker.source, maker=_LIVE_READ
            )
            for worker in (workers.workers if workers else None) or ()
        )

    def leader(self) -> str:
        """The name of the leader, or empty. Raises Unavailable, ApiError."""
        leader = self._list("leader").leader
        return leader.name if leader else ""

    def evict_leader(self) -> None:
        """Ask this master to give up leadership. Call the leader itself, not the Service.

        Raises Unavailable, ApiError, LeaseExpired.
        """
        self._do("PUT", "/apis/v1alpha1/leader/1", "DM-master asked to give up leading", {"master": self._call.host})

    def delete_master(self, master: LiveMaster) -> None:
        """Remove a master that the masters have listed; one that is no longer listed counts as removed.

        Raises Conflict if the masters refuse or list it all the same, or if another master now has its name; TypeError
        if the masters have not listed it; Unavailable, ApiError, LeaseExpired.
        """
        if not isinstance(master, LiveMaster):
            raise TypeError(f"a master is removed as the masters show it: take it from masters(), not {master!r}")
        path = f"{_MEMBERS}/master/{quote(master.name, safe='')}"
        there = next((each for each in self.masters() if each.name == master.name), None)
        if there is None:
            return
        if there.id != master.id:
            what = f"{master.name} has id {there.id} by now, not {master.id}"
            raise Conflict("DELETE", self.base_url + path, 200, b"", what)
        self._do("DELETE", path, "DM-master removed", {"master": master.name, "member_id": master.id})
        self._require_gone(path, master.name, self.masters())

    def delete_worker(self, worker: LiveWorker) -> None:
        """Remove a worker that the masters have listed as offline; one that is no longer listed counts as removed.

        Raises Conflict if it is not offline, or if the masters refuse or list it all the same; TypeError if they have
        not listed it; Unavailable, ApiError, LeaseExpired.
        """
        if not isinstance(worker, LiveWorker):
            raise TypeError(f"a worker is removed as the masters show it: take it from workers(), not {worker!r}")
        path = f"{_MEMBERS}/worker/{quote(worker.name, safe='')}"
        there = next((each for each in self.workers() if each.name == worker.name), None)
        if there is None:
            return
        if there.stage != OFFLINE:
            raise Conflict("DELETE", self.base_url + path, 200, b"", f"{worker.name} is {there.stage}, not {OFFLINE}")
        self._do("DELETE", path, "DM-worker removed", {"worker": worker.name})
        self._require_gone(path, worker.name, self.workers())

    def _list(self, kind: str, timeout: float = TIMEOUT) -> "_Entry":
        path = f"{_MEMBERS}?{kind}=true"
        answer = self._call.get(path, timeout=timeout)
        found = self._agreed("GET", path, answer)
        if len(found.members or ()) != 1:
            what = f"members has {len(found.members or ())} entries, not one"
            raise self._call.malformed(path, f"malformed answer: {what}")
        return (found.members or ())[0]

    def _require_gone(self, path: str, name: str, listed: Sequence[LiveMaster | LiveWorker]) -> None:
        """Raise Conflict if the masters still list a member that they say they have removed."""
        if any(each.name == name for each in listed):
            what = f"the masters contradict themselves: they have removed {name}, but list it"
            raise Conflict("DELETE", self.base_url + path, 200, b"", what)

    def _do(self, method: str, path: str, done: str, about: dict[str, str]) -> None:
        answer = self._call.write(method, path, done=done, about=about)
        self._agreed(method, path, answer)

    def _agreed(self, method: str, path: str, answer: Response) -> "_Listed":
        """Decode an answer. A refusal raises Conflict, although DM sends it with an HTTP success status."""
        try:
            found = decoder(_Listed).decode(answer.body)
        except UNREADABLE as error:
            raise self._call.malformed(path, misread(answer.body, error), method) from error
        if not found.result:
            reason = f"DM-master refused: {shortened(found.msg) or 'it does not say why'}"
            raise Conflict(method, self.base_url + path, answer.status, b"", reason)
        return found


_Urls = Annotated[tuple[Name, ...], Meta(max_length=URLS)] | None


class _Master(msgspec.Struct, rename="camel"):
    name: Name
    member_id: Name = msgspec.field(name="memberID", default="")
    alive: bool = False
    peer_urls: _Urls = msgspec.field(name="peerURLs", default=None)
    client_urls: _Urls = msgspec.field(name="clientURLs", default=None)


class _Masters(msgspec.Struct):
    masters: Annotated[tuple[_Master, ...], Meta(max_length=MEMBERS)] | None = None


class _Worker(msgspec.Struct):
    name: Name
    addr: Name = ""
    stage: Name = ""
    source: Name = ""


class _Workers(msgspec.Struct):
    workers: Annotated[tuple[_Worker, ...], Meta(max_length=MEMBERS)] | None = None


class _Leader(msgspec.Struct):
    name: Name = ""


class _Entry(msgspec.Struct):
    master: _Masters | None = None
    worker: _Workers | None = None
    leader: _Leader | None = None


class _Listed(msgspec.Struct):
    result: bool = False
    msg: str = ""
    members: Annotated[tuple[_Entry, ...], Meta(max_length=MEMBERS)] | None = None
