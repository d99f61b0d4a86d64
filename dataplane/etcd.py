"""The etcd in PD, through its JSON gateway (dataplane-apis.md 4)."""

import base64
import binascii
from collections.abc import Mapping

import msgspec

from dataplane.calls import Caller
from ports.clock import Clock, SystemClock
from ports.fencing import OpenFence
from ports.transport import Transport

_RANGE = "/v3/kv/range"


class EtcdClient:
    """Reads the etcd in one PD, or behind the Service in front of all members. Safe for use by many threads."""

    def __init__(self, transport: Transport, base_url: str, clock: Clock | None = None) -> None:
        """A client of the etcd in the PD at `base_url`."""
        self._call = Caller(transport, base_url, OpenFence(), clock or SystemClock())

    def get(self, key: str) -> bytes | None:
        """The value of a key, None when there is none. Raises Unavailable, ApiError; NotFound as `below`."""
        found = self._call.ask_json(_RANGE, {"key": _encoded(key.encode())}, _ANSWER)
        return _decoded(found.kvs[0].value) if found.kvs else None

    def below(self, prefix: str) -> Mapping[str, bytes]:
        """The keys that begin with `prefix`, which is not empty, each with its value.

        Raises Unavailable, ApiError; NotFound where the gateway is switched off.
        """
        first = prefix.encode()
        asked = {"key": _encoded(first), "range_end": _encoded(first[:-1] + bytes([first[-1] + 1]))}
        found = self._call.ask_json(_RANGE, asked, _ANSWER)
        return {_decoded(each.key).decode("utf-8", "replace"): _decoded(each.value) for each in found.kvs or ()}


class _KeyValue(msgspec.Struct):
    key: str = ""
    value: str = ""


class _Answer(msgspec.Struct):
    kvs: list[_KeyValue] | None = None


_ANSWER = msgspec.json.Decoder(_Answer)


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
