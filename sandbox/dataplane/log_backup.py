"""The records of log backup tasks that BR and TiKV keep in PD's etcd (dataplane-apis.md 4)."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass

from sandbox.dataplane.pd.etcd import Etcd

_ROOT = "/tidb/br-stream"
_STREAM_ERROR = "application/x-protobuf; messagetype=brpb.StreamBackupError"


def task_names(etcd: Etcd, now: float) -> list[str]:
    """The names of all tasks."""
    prefix = f"{_ROOT}/info/".encode()
    return [key[len(prefix) :].decode() for key, _ in etcd.range(prefix, prefix[:-1] + b"0", now)]


@dataclass(frozen=True, slots=True)
class LogTask:
    """A named task in a cluster's etcd; `now` is the cluster's clock."""

    etcd: Etcd
    name: str
    now: Callable[[], float]

    @property
    def exists(self) -> bool:
        """True if it was started and not stopped."""
        return bool(self.etcd.range(self._key("info"), b"", self.now()))

    @property
    def is_paused(self) -> bool:
        """True if it is paused, by a user or an error."""
        return bool(self.etcd.range(self._key("pause"), b"", self.now()))

    def begin(self, start_ts: int) -> None:
        """Start the task, as `br log start`."""
        self.etcd.put(self._key("info"), self.name.encode())
        self.advance(start_ts)

    def advance(self, checkpoint: int) -> None:
        """Record that everything before this TSO has been saved."""
        self.etcd.put(self._key("checkpoint", "central_global"), checkpoint.to_bytes(8, "big"))

    def pause(self) -> None:
        """Pause the task, as `br log pause`."""
        self.etcd.put(self._key("pause"), b"")

    def fail(self, message: str, store: int = 1) -> None:
        """Pause the task with an error of a TiKV."""
        error = _text(3, message.encode()) + bytes([4 << 3, store])
        self.etcd.put(self._key("last-error", str(store)), error)
        told = {"severity": "ERROR", "payload_type": _STREAM_ERROR, "payload": base64.b64encode(error).decode()}
        self.etcd.put(self._key("pause"), json.dumps(told).encode())

    def resume(self) -> None:
        """Resume the task, as `br log resume`."""
        self._delete("pause")
        self._delete("last-error")

    def stop(self) -> None:
        """Stop the task, as `br log stop`."""
        for kind in ("info", "checkpoint", "pause", "last-error"):
            self._delete(kind)

    def _key(self, *kind_and_rest: str) -> bytes:
        kind, *rest = kind_and_rest
        return "/".join((_ROOT, kind, self.name, *rest)).encode()

    def _delete(self, kind: str) -> None:
        key = self._key(kind)
        self.etcd.delete(key, b"", self.now())
        self.etcd.delete(key + b"/", key + b"0", self.now())


def _text(field: int, value: bytes) -> bytes:
    """Encode a text field of a protobuf message; at most 16383 bytes."""
    length = bytes([len(value)]) if len(value) < 0x80 else bytes([len(value) & 0x7F | 0x80, len(value) >> 7])
    return bytes([field << 3 | 2]) + length + value
