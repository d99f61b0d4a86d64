"""A capture: its session in PD's etcd, the owner's work, and its API (dataplane-apis.md 8, 15.3)."""

import json
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from ports.transport import Request, Response
from sandbox.dataplane.dependencies import Dependencies
from sandbox.dataplane.listening import Setting, reachable_port
from sandbox.dataplane.network import Origin
from sandbox.dataplane.pd.clients import find_pd
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.processes import Answer, Exit, Launch, not_found
from sandbox.dataplane.server_process import ServerProcess
from sandbox.dataplane.server_program import ServerProgram
from sandbox.dataplane.ticdc import changefeeds
from sandbox.dataplane.ticdc.book import Book, CaptureInfo
from sandbox.dataplane.ticdc.changefeeds import error as _error

_ADDRESS = Setting("addr", "addr", "127.0.0.1:8300")
_ADVERTISED = Setting("advertise-addr", "advertise-addr")
_PD = Setting("pd")
_FEEDS = "v2/changefeeds"
_DRAINS_SINCE = (6, 3, 0)
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")

Tables = Mapping[str, Sequence[str]]
"""Tables by capture."""


class TicdcProcess(ServerProcess):
    """A `cdc server` behind its start script."""

    def __init__(self, launch: Launch, deps: Dependencies) -> None:
        self._launch = launch
        super().__init__(launch, deps, deps.timings.capture_start)
        self._port = reachable_port(_ADDRESS.of(launch))
        self._cluster: PdCluster | None = None
        self._id = ""
        self._lease = 0
        self._ownerless_since: float | None = None
        self._may_own_at = 0.0
        self._served_at = 0.0
        """When the owner last moved tables."""
        self._lost_at: dict[str, float] = {}
        """Since when captures with tables have been missing to the owner."""
        if launch.command[1:2] != ("server",):
            self._end(Exit(1, f"unknown command {' '.join(launch.command[1:2])!r} for 'cdc'"))

    @property
    def capture(self) -> str:
        """Its capture id; empty while it has none."""
        return self._id

    def listens(self, port: int) -> bool:
        """Accept connections once it is a capture."""
        return bool(self._id) and port == self._port

    def handle(self, port: int, request: Request) -> Answer:
        """Answer on the API; others forward to the owner what only the owner can answer."""
        path = urlsplit(request.url).path
        if port != self._port:
            return Answer(not_found())
        book = self._book()
        if path == "/status":
            return Answer(_json(200, self._status(book)))
        if not path.startswith("/api/"):
            return Answer(not_found())
        if book is None:
            return Answer(_error(500, "CDC:ErrPDEtcdAPIError", "etcd api call error: context deadline exceeded"))
        owner = self._owner(book)
        if owner is None:
            return Answer(_error(503, "CDC:ErrOwnerNotFound", "owner not found"))
        return Answer(owner.answer(request.method, path.removeprefix("/api/"), request.body or b"", book))

    # the session

    def _work(self, now: float) -> float:
        """Keep the session alive, campaign, do the owner's work."""
        timings = self._deps.timings
        if self._cluster is None or not self._id:
            return timings.capture_tick if self._register(now) else timings.dependency_retry
        book = self._book()
        if book is None:
            return timings.dependency_retry
        if not self._cluster.etcd.keep_alive(self._lease, now):
            # its session has expired, and with it its role
            self._id = ""
            return timings.dependency_retry
        self._campaign(book, now)
        if book.owner() == self._id:
            self._schedule(book, now)
        return timings.capture_tick

    def _register(self, now: float) -> bool:
        cluster = find_pd(_PD.of(self._launch), self._launch, self._deps)
        if cluster is None:
            return False
        self._cluster, self._id = cluster, self._deps.randomness.uuid()
        self._lease = cluster.etcd.grant(self._deps.timings.capture_lease, now)
        own = CaptureInfo(self._id, _ADVERTISED.of(self._launch), f"v{self._launch.version}")
        Book(cluster.etcd, now).register(own, self._lease)
        return True

    def _campaign(self, book: Book, now: float) -> None:
        """Become the owner if there has been none for a while; one that resigned waits longer."""
        if book.owner():
            self._ownerless_since = None
            return
        self._ownerless_since = self._ownerless_since or now
        due = max(self._ownerless_since + self._deps.timings.capture_election, self._may_own_at)
        if now >= due:
            book.campaign(self._id, self._lease)
            self._served_at, self._lost_at = now, {}

    def _finish(self, now: float) -> None:
        """Deregister; the owner notices the missing tables, and the session of a killed capture expires."""
        book = self._book()
        if book is not None and self._id:
            book.leave(self._id)
        super()._finish(now)

    def _book(self) -> Book | None:
        """The records in PD; None while PD has no leader."""
        if self._cluster is None or self._cluster.leader is None:
            return None
        return Book(self._cluster.etcd, self._deps.clock.now())

    # the owner

    def _schedule(self, book: Book, now: float) -> None:
        captures, assigned = book.captures(), book.assigned()
        missed = {each: self._lost_at.get(each, now) for each in assigned if each not in captures}
        self._lost_at = missed
        gone = {each for each, since in missed.items() if now - since >= self._deps.timings.capture_missed}
        kept = {each: tables for each, tables in assigned.items() if each not in gone}
        out_of_reach = {table for each in missed if each not in gone for table in assigned[each]}
        count = int((now - self._served_at) * self._deps.timings.table_moves)
        if count == 0:
            return
        self._served_at = now
        after = moved(book.tables() - out_of_reach, kept, captures, count)
        for each in gone:
            book.assign(each, ())
        for capture, tables in after.items():
            if sorted(tables) != sorted(assigned.get(capture, ())):
                book.assign(capture, tables)

    # the API

    def _status(self, book: Book | None) -> dict[str, object]:
        own = book.captures().get(self._id) if book else None
        is_owner = book is not None and book.owner() == self._id
        version = {"version": f"v{self._launch.version}", "git_hash": "0" * 40}
        return version | {"id": self._id, "pid": 1, "is_owner": is_owner, "liveness": int(bool(own and own.stopping))}

    def _owner(self, book: Book) -> "TicdcProcess | None":
        """The owner's process, which answers for all; None if there is none, or it is unreachable."""
        info = book.captures().get(book.owner())
        if info is None or info.id == self._id:
            return self if info else None
        scheme = "https" if self._launch.tls is not None else "http"
        found = self._deps.network.find(f"{scheme}://{info.address}", Origin.of(self._launch))
        process = found.process if found is not None else None
        return process if isinstance(process, TicdcProcess) else None

    def answer(self, method: str, path: str, body: bytes, book: Book) -> Response:
        """The owner's answer."""
        match method, path:
            case "GET", "v1/health":
                return Response(200, {}, b"")
            case "GET", "v1/captures":
                owner, found = book.owner(), book.captures().values()
                told = (
                    {"id": capture.id, "is_owner": capture.id == owner, "address": capture.address} for capture in found
                )
                return _json(200, list(told))
            case "POST", "v1/owner/resign":
                return self._resign(book)
            case "PUT", "v1/captures/drain" if self._knows_drain:
                return _drain(book, body)
        if path.startswith(_FEEDS):
            now = self._deps.clock.wall()
            return changefeeds.answer(method, path.removeprefix(_FEEDS), body, book, now) or not_found()
        return not_found()

    def _resign(self, book: Book) -> Response:
        book.resign()
        # others go first; a sole capture is elected again
        self._may_own_at = self._deps.clock.now() + 3 * self._deps.timings.capture_election
        return Response(202, {}, b"")

    @property
    def _knows_drain(self) -> bool:
        match = _VERSION.match(self._launch.version)
        return match is None or tuple(map(int, match.groups())) >= _DRAINS_SINCE


def _drain(book: Book, body: bytes) -> Response:
    try:
        target = json.loads(body)["capture_id"]
    except (ValueError, KeyError, TypeError):
        return _error(400, "CDC:ErrAPIInvalidParam", "invalid api parameter")
    captures = book.captures()
    if target not in captures:
        return _error(400, "CDC:ErrCaptureNotExist", f"capture not exists, {target}")
    if len(captures) == 1:
        return _error(400, "CDC:ErrSchedulerRequestFailed", "only one capture alive")
    if target == book.owner():
        return _error(400, "CDC:ErrSchedulerRequestFailed", "cannot drain the owner")
    book.stop(target)
    return _json(202, {"current_table_count": len(book.assigned().get(target, ()))})


def _json(status: int, body: object) -> Response:
    return Response(status, {"content-type": "application/json; charset=utf-8"}, json.dumps(body).encode())


TICDC = ServerProgram(
    name="ticdc",
    start=TicdcProcess,
    file="cdc",
    tables=("kv-client", "log", "sorter"),
    numbers=("gc-ttl",),
    identity=(Setting("ca"), Setting("cert"), Setting("key")),
)


def moved(tables: set[str], assigned: Tables, captures: Mapping[str, CaptureInfo], count: int) -> dict[str, list[str]]:
    """The tables of each capture after at most `count` moves; tables of missing captures are unassigned.

    A table that moves from a living capture is never unassigned.
    """
    found = {capture: [table for table in assigned.get(capture, ()) if table in tables] for capture in sorted(captures)}
    takers = [each for each in found if not captures[each].stopping]
    if not takers:
        return found
    homeless = sorted(tables.difference(*found.values()))
    for _ in range(count):
        fewest = min(takers, key=lambda each: len(found[each]))
        if homeless:
            found[fewest].append(homeless.pop(0))
        elif stopping := next((each for each in found if each not in takers and found[each]), ""):
            found[fewest].append(found[stopping].pop())
        else:
            most = max(takers, key=lambda each: len(found[each]))
            if len(found[most]) - len(found[fewest]) < 2:
                break
            found[fewest].append(found[most].pop())
    return found
