"""TiCDC's API (dataplane-apis.md 8)."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from dataplane.answers import MEMBERS, Count, Id, Name, require_uint64
from dataplane.calls import TIMEOUT, Caller
from dataplane.errors import DataPlaneError, NotFound, error_from_answer, misread
from ports.structs import UNREADABLE, decoder
from ports.transport import Response

PORT = 8301

_UNKNOWN = frozenset({404})
"""The answer of a TiCDC that is too old for a call."""


class CaptureStatus(msgspec.Struct, frozen=True):
    """A capture's report of itself."""

    id: Name
    version: Name = ""
    is_owner: bool = False


class Capture(msgspec.Struct, frozen=True):
    """A capture as the owner lists it; `address` is the advertised `host:port`."""

    id: Name
    address: Name = ""
    is_owner: bool = False


class _Drained(msgspec.Struct, frozen=True):
    current_table_count: Count


def _code(answer: Response) -> str:
    """TiCDC's code of an error; empty for any other answer."""
    try:
        return decoder(_Refusal).decode(answer.body).error_code
    except UNREADABLE:
        return ""


_CHANGEFEEDS = "/api/v2/changefeeds"
_NO_CHANGEFEED = frozenset({400, 404})
_NOT_THERE = "CDC:ErrChangeFeedNotExists"
_CAPTURES = msgspec.json.Decoder(Annotated[tuple[Capture, ...], Meta(max_length=MEMBERS)])


class ChangefeedError(msgspec.Struct, frozen=True):
    """The last error of a changefeed; its message may quote the sink, with keys."""

    code: Name = ""
    message: str = ""


class Changefeed(msgspec.Struct, frozen=True):
    """A changefeed as TiCDC reports it: `state` is e.g. `normal`, `stopped`, `warning` or `failed`.

    `checkpoint_ts` is a TSO. Newer versions mask the keys in `sink_uri`.
    """

    id: Name
    state: Name = ""
    sink_uri: str = ""
    checkpoint_ts: Id = 0
    error: ChangefeedError | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a checkpoint beyond 64 bits."""
        require_uint64(checkpoint_ts=self.checkpoint_ts)


class _Refusal(msgspec.Struct, frozen=True):
    error_code: str = ""


class TiCDCClient:
    """One capture. Thread-safe."""

    def __init__(self, caller: Caller) -> None:
        """A client of the capture that `caller` reaches."""
        self._call = caller

    def status(self, timeout: float = TIMEOUT) -> CaptureStatus:
        """The capture's report of itself. Raises Unavailable, ApiError."""
        return self._call.get_json("/status", decoder(CaptureStatus), timeout=timeout)

    def captures(self) -> Sequence[Capture] | None:
        """All captures; None if this version cannot list them.

        An answer that is not a list is an error, where v1.6 takes it for an empty list. Raises Unavailable, ApiError.
        """
        try:
            captures: tuple[Capture, ...] = self._call.get_json("/api/v1/captures", _CAPTURES)
        except NotFound:
            return None
        return captures

    def resign_owner(self) -> bool:
        """Ask the owner to hand over to another capture; False if this version cannot. Raises Unavailable, ApiError."""
        return self._send("POST", "/api/v1/owner/resign", None, "a TiCDC owner asked to resign") is not None

    def drain(self, capture_id: str) -> int:
        """Move a capture's tables to others and give it no new ones; returns the number that remain.

        0 if this version cannot drain: then no table moves. Raises Unavailable, ApiError.
        """
        path = "/api/v1/captures/drain"
        answer = self._send("PUT", path, {"capture_id": capture_id}, "a TiCDC capture asked to give up its tables")
        if answer is None:
            return 0
        try:
            return decoder(_Drained).decode(answer.body).current_table_count
        except UNREADABLE as error:
            raise self._call.malformed(path, misread(answer.body, error)) from error

    def changefeed(self, name: str, timeout: float = TIMEOUT) -> Changefeed | None:
        """A changefeed; None only if TiCDC says in its own words that there is none. Raises Unavailable, ApiError."""
        path = f"{_CHANGEFEEDS}/{name}"
        answer = self._call.get(path, timeout=timeout, also=_NO_CHANGEFEED)
        if answer.status in _NO_CHANGEFEED:
            if _code(answer) == _NOT_THERE:
                return None
            raise error_from_answer("GET", self._call.base_url + path, answer)
        return self._call.decoded(path, answer, decoder(Changefeed))

    def create_changefeed(self, name: str, sink: str, begin: int = 0) -> None:
        """Ask for a changefeed from a TSO on, 0 for now; files get no directory for each day, as TiCI reads them.

        Raises Unavailable, ApiError, LeaseExpired.
        """
        config = {"sink": {"date_separator": "none"}}
        body: dict[str, object] = {"changefeed_id": name, "sink_uri": sink, "replica_config": config}
        body |= {"start_ts": begin} if begin else {}
        self._tell("POST", _CHANGEFEEDS, body, "TiCDC asked for a changefeed", name)

    def pause_changefeed(self, name: str) -> None:
        """Pause a changefeed. Raises Unavailable, ApiError, LeaseExpired."""
        self._tell("POST", f"{_CHANGEFEEDS}/{name}/pause", None, "TiCDC asked to pause a changefeed", name)

    def set_sink(self, name: str, sink: str) -> None:
        """Give a paused changefeed another sink. Raises Unavailable, ApiError, LeaseExpired."""
        path = f"{_CHANGEFEEDS}/{name}"
        self._tell("PUT", path, {"sink_uri": sink}, "TiCDC asked to change the sink of a changefeed", name)

    def resume_changefeed(self, name: str) -> None:
        """Resume a changefeed. Raises Unavailable, ApiError, LeaseExpired."""
        self._tell("POST", f"{_CHANGEFEEDS}/{name}/resume", {}, "TiCDC asked to resume a changefeed", name)

    def _tell(self, method: str, path: str, body: object, done: str, name: str) -> None:
        self._call.write(method, path, body, done=done, about={"server": self._call.host, "changefeed": name})

    def healthy(self) -> bool:
        """True if this capture is the owner and reports good health. No answer means False; raises no
        DataPlaneError.
        """
        try:
            self._call.get("/api/v1/health", also=_UNKNOWN)
        except DataPlaneError:
            return False
        return True

    def _send(self, method: str, path: str, body: object, done: str) -> Response | None:
        """The answer; None if this version does not know the call."""
        answer = self._call.write(method, path, body, done=done, about={"server": self._call.host}, also=_UNKNOWN)
        return None if answer.status in _UNKNOWN else answer
