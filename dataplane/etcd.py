"""PD's embedded etcd, through its JSON gateway (dataplane-apis.md 4)."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from dataplane.addresses import Address
from dataplane.calls import Caller
from ports.clock import Clock, SystemClock
from ports.fencing import Fence, OpenFence
from ports.transport import Transport

_RANGE = "/v3/kv/range"
_GRANTING = "/v3/lease/grant"


@dataclass(frozen=True, slots=True)
class Entry:
    """The value of a key and the id of its lease, 0 for none."""

    value: bytes
    lease: int


class EtcdClient:
    """The etcd in one PD, or behind the Service of all PD members. Thread-safe."""

    def __init__(
        self, transport: Transport, base_url: Address, clock: Clock | None = None, fence: Fence | None = None
    ) -> None:
        """A client of the etcd in the PD at `base_url`. Every write asks `fence` first."""
        self._call = Caller(transport, base_url, fence or OpenFence(), clock or SystemClock())

    def get(self, key: str) -> bytes | None:
        """The value of a key; None if it does not exist. Raises Unavailable, ApiError; NotFound as `below`."""
        found = self.entry(key)
        return found.value if found else None

    def entry(self, key: str) -> Entry | None:
        """The value of a key and its lease. Raises like `get`."""
        answer = self._call.ask_json(_RANGE, {"key": _encoded(key.encode())}, _ANSWER)
        return Entry(answer.kvs[0].value, answer.kvs[0].lease) if answer.kvs else None

    def below(self, prefix: str) -> Mapping[str, bytes]:
        """The keys that begin with `prefix` (not empty) and their values.

        Raises Unavailable, ApiError; NotFound if the gateway is disabled.
        """
        asked = _below(prefix)
        answer = self._call.ask_json(_RANGE, asked, _ANSWER)
        return {key_value.key.decode("utf-8", "replace"): key_value.value for key_value in answer.kvs or ()}

    def seconds_left(self, lease: int) -> int:
        """The remaining seconds of a lease, after which its keys vanish; negative if it has expired. Raises
        as `get`.
        """
        return self._call.ask_json("/v3/lease/timetolive", {"ID": str(lease)}, _TIME_LEFT).ttl

    def grant(self, seconds: int) -> int:
        """Create a lease and return its id. Raises Unavailable, ApiError, LeaseExpired; NotFound as `below`."""
        answer = self._call.write("POST", _GRANTING, {"TTL": str(seconds)}, done="", about={})
        return self._call.decoded(_GRANTING, answer, _GRANT).id

    def put(self, key: str, value: bytes, lease: int) -> None:
        """Write a key, which vanishes when its lease expires. Raises like `grant`."""
        body = {"key": _encoded(key.encode()), "value": _encoded(value), "lease": str(lease)}
        about = {"key": key, "value": value.decode("utf-8", "replace")}
        self._call.write("POST", "/v3/kv/put", body, done="key written in PD's etcd", about=about)

    def delete(self, key: str) -> None:
        """Delete a key if it exists. Raises like `grant`."""
        body = {"key": _encoded(key.encode())}
        self._call.write("POST", "/v3/kv/deleterange", body, done="key deleted in PD's etcd", about={"key": key})

    def delete_together(self, keys: Sequence[str], prefixes: Sequence[str]) -> None:
        """Delete keys, and all keys that begin with one of the prefixes, in one transaction. Raises like `grant`."""
        ranges = [*({"key": _encoded(key.encode())} for key in keys), *map(_below, prefixes)]
        body = {"success": [{"requestDeleteRange": each} for each in ranges]}
        about = {"keys": list(keys), "below": list(prefixes)}
        self._call.write("POST", "/v3/kv/txn", body, done="keys deleted in PD's etcd", about=about)


class _KeyValue(msgspec.Struct):
    key: bytes = b""
    value: bytes = b""
    lease: int = 0


class _Answer(msgspec.Struct):
    kvs: list[_KeyValue] | None = None


class _TimeLeft(msgspec.Struct):
    ttl: int = msgspec.field(name="TTL", default=0)


class _Grant(msgspec.Struct):
    id: int = msgspec.field(name="ID")


# not strict: the gateway writes numbers as text
_ANSWER = msgspec.json.Decoder(_Answer, strict=False)
_TIME_LEFT = msgspec.json.Decoder(_TimeLeft, strict=False)
_GRANT = msgspec.json.Decoder(_Grant, strict=False)


def _below(prefix: str) -> dict[str, str]:
    """The range of all keys that begin with a prefix (not empty)."""
    first = prefix.encode()
    return {"key": _encoded(first), "range_end": _encoded(first[:-1] + bytes([first[-1] + 1]))}


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()
