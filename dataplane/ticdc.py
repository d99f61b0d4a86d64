"""TiCDC's API (dataplane-apis.md 8)."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from dataplane.answers import MEMBERS, Count, Name
from dataplane.calls import TIMEOUT, Caller
from dataplane.errors import DataPlaneError, NotFound, misread
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


_CAPTURES = msgspec.json.Decoder(Annotated[tuple[Capture, ...], Meta(max_length=MEMBERS)])


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
