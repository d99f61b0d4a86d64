"""TiProxy's API (dataplane-apis.md 9)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from dataplane.calls import TIMEOUT, Caller
from dataplane.errors import DataPlaneError
from ports.foreign_text import shortened
from ports.structs import UNREADABLE, decoder

API_PORT = 3080
SQL_PORT = 6000
PEER_PORT = 3081

_OK, _BAD_GATEWAY = 200, 502


class _Config(msgspec.Struct):
    """The fields of the configuration that the operator reads."""

    labels: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class ProxyHealth:
    """A TiProxy's report of itself as text, and whether it serves."""

    info: str
    serves: bool


class TiProxyClient:
    """One TiProxy. Thread-safe."""

    def __init__(self, caller: Caller) -> None:
        """A client of the TiProxy that `caller` reaches."""
        self._call = caller

    def health(self, timeout: float = TIMEOUT) -> ProxyHealth | None:
        """TiProxy's health report; None if the answer is something else or too late.

        TiProxy answers 502 while it closes and, since v1.3.0, while no TiDB is healthy. Raises no DataPlaneError.
        """
        try:
            answer = self._call.get("/api/debug/health", timeout=timeout, also=frozenset({_BAD_GATEWAY}))
        except DataPlaneError:
            return None
        if answer.status not in (_OK, _BAD_GATEWAY):
            return None
        return ProxyHealth(_info(answer.body), answer.status == _OK)

    def set_labels(self, labels: Mapping[str, str]) -> None:
        """Set labels that the server lacks; its other settings stay.

        Raises Unavailable, ApiError, MalformedAnswer, LeaseExpired.
        """
        known = self._call.get_json("/api/admin/config?format=json", decoder(_Config)).labels or {}
        if labels.items() <= known.items():
            return
        # a quoted TOML key may contain dots, and a JSON string is a valid TOML string
        lines = (f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in labels.items())
        body = ("[labels]\n" + "".join(lines)).encode()
        about = {"server": self._call.host, "labels": dict(labels)}
        self._call.write("PUT", "/api/admin/config/", body, done="labels of a TiProxy set", about=about)


def _info(body: bytes) -> str:
    """The health report as text, if the body is the API's JSON object."""
    try:
        decoder(dict[str, msgspec.Raw]).decode(body)
    except UNREADABLE:
        return f"{len(body)} bytes that are not JSON"
    return shortened(body.decode("utf-8", "replace"))
