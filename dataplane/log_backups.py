"""The state of log backups that BR and TiKV keep in PD's etcd, and their service in TiKV (backup.md 3.8,
dataplane-apis.md 4).

v1.6 reads all keys that begin with a task's name, and so mixes up the tasks `a` and `ab`. It also reads a protobuf
error as JSON, which always fails.
"""

import base64
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import structlog

from dataplane.addresses import Address
from dataplane.errors import ApiError, DataPlaneError, MalformedAnswer, unavailable
from dataplane.etcd import EtcdClient
from dataplane.tls import TlsMaterial
from ports import effects, protobuf
from ports.fencing import Fence
from ports.foreign_text import shortened
from ports.grpc import UNIMPLEMENTED, CallRefused, PendingCall, UnaryCall, UnaryCalls
from ports.structs import UNREADABLE
from ports.transport import TransportError

_log = structlog.get_logger(__name__)

MANUAL = "manual"
"""The pause reason of a task that a user has paused."""

_ROOT = "/tidb/br-stream"
_CHECKPOINT_BYTES = 8
_ERROR_MESSAGE, _ERROR_STORE = 3, 4
_UNKNOWN, _ERROR = "unknown", "error"


@dataclass(frozen=True, slots=True)
class LogTask:
    """A log backup task as the cluster records it.

    `checkpoint` is the TSO up to which all changes are saved, 0 if unknown. `paused` is the reason of a pause (`manual`
    for a user's), empty while the task runs, None if PD did not answer that question.
    """

    exists: bool
    checkpoint: int = 0
    paused: str | None = ""


def read_log_task(etcd: EtcdClient, name: str) -> LogTask:
    """The current state of the named task. Raises DataPlaneError if PD does not say that it exists (LOG-1, LOG-5)."""
    if etcd.get(f"{_ROOT}/info/{name}") is None:
        return LogTask(exists=False)
    return LogTask(exists=True, checkpoint=_checkpoint(etcd, name), paused=_paused(etcd, name))


def _checkpoint(etcd: EtcdClient, name: str) -> int:
    with contextlib.suppress(DataPlaneError):
        found = etcd.get(f"{_ROOT}/checkpoint/{name}/central_global") or b""
        return int.from_bytes(found, "big") if len(found) == _CHECKPOINT_BYTES else 0
    return 0


def _paused(etcd: EtcdClient, name: str) -> str | None:
    try:
        found = etcd.get(f"{_ROOT}/pause/{name}")
    except DataPlaneError:
        return None
    return "" if found is None else pause_reason(found)


def log_task_names(etcd: EtcdClient) -> list[str]:
    """The names of all log backup tasks of a cluster; it runs at most one at a time. Raises DataPlaneError."""
    prefix = f"{_ROOT}/info/"
    return sorted(key.removeprefix(prefix) for key in etcd.below(prefix))


def end_log_task(etcd: EtcdClient, name: str) -> None:
    """Remove a task and all its records, as `br log stop` does: TiKV stops saving the log, and TiDB's checkpoint
    advancer releases its safe point. Raises DataPlaneError, LeaseExpired.
    """
    keys = [f"{_ROOT}/{kind}/{name}" for kind in ("info", "pause")]
    kinds = ("ranges", "checkpoint", "storage-checkpoint", "last-error")
    etcd.delete_together(keys, [f"{_ROOT}/{kind}/{name}/" for kind in kinds])


class _Pause(msgspec.Struct):
    severity: str = ""
    payload_type: str = ""
    payload: str = ""


_PAUSE = msgspec.json.Decoder(_Pause)


def pause_reason(value: bytes) -> str:
    """The pause reason of a task: `manual`, or the first 200 printable characters of an error; `error` or `unknown` if
    it cannot be read.
    """
    if not value:
        return MANUAL
    try:
        found = _PAUSE.decode(value)
    except UNREADABLE:
        return _UNKNOWN
    if found.severity == "MANUAL":
        return MANUAL
    return shortened(_explained(found)) or _ERROR


def _explained(pause: _Pause) -> str:
    """The error text of a pause; empty if it cannot be read."""
    try:
        payload = base64.b64decode(pause.payload, validate=True)
    except ValueError:
        # not base64, or not ASCII
        return ""
    media = pause.payload_type.replace(" ", "")
    if media.startswith("text/plain"):
        return payload.decode("utf-8", "replace")
    if media == "application/x-protobuf;messagetype=brpb.StreamBackupError":
        return f"Paused by error{text}" if (text := _stream_error(payload)) else ""
    return ""


def _stream_error(content: bytes) -> str:
    """The message and the store of a `StreamBackupError`; empty for other content."""
    try:
        found = dict(protobuf.fields(content))
    except protobuf.NoMessage:
        return ""
    message, store = found.get(_ERROR_MESSAGE), found.get(_ERROR_STORE, 0)
    if not isinstance(message, bytes) or not isinstance(store, int):
        return ""
    return f"(store {store}): {message.decode('utf-8', 'replace')}"


_FLUSH_NOW = "/logbackup.LogBackup/FlushNow"
_RESULTS, _TASK, _SUCCESS, _FAILURE = 1, 1, 2, 3

FLUSH_TIMEOUT = 180.0
"""Seconds that a TiKV gets to flush its tasks. It flushes by itself about as often."""


class LogBackupServer:
    """The log backup service of one TiKV, over gRPC. Thread-safe."""

    def __init__(self, calls: UnaryCalls, url: Address, tls: TlsMaterial | None, fence: Fence) -> None:
        self._calls = calls
        self._url = url
        self._tls = tls
        self._fence = fence

    def begin_flush(self) -> "Flush":
        """Ask TiKV to save what it holds of all tasks, without waiting for it.

        Raises Unavailable; ApiError if this process cannot call gRPC; LeaseExpired.
        """
        self._fence.check()
        effects.note()
        with _typed_errors(self._url):
            call = self._calls.begin(UnaryCall(self._url, _FLUSH_NOW, timeout=FLUSH_TIMEOUT, credentials=self._tls))
        return Flush(self._url, call)


class Flush:
    """A flush that the operator has requested of a TiKV."""

    def __init__(self, url: Address, call: PendingCall) -> None:
        self._url = url
        self._call = call

    def tasks(self) -> tuple[str, ...] | None:
        """The tasks that were flushed, none if none runs; None while the flush lasts. Never waits.

        Raises Unavailable; ApiError if the flush has failed or is not offered, or if the answer is malformed.
        """
        effects.note()
        with _typed_errors(self._url):
            answer = self._call.answer()
        return None if answer is None else self._flushed(answer)

    def give_up(self) -> None:
        """Wait for it no longer. TiKV may carry it out nevertheless."""
        self._call.cancel()

    def _flushed(self, answer: bytes) -> tuple[str, ...]:
        try:
            results = [dict(protobuf.fields(part)) for part in _results(answer)]
        except protobuf.NoMessage as error:
            raise MalformedAnswer("gRPC", self._url + _FLUSH_NOW, 0, reason=f"malformed answer: {error}") from None
        for each in results:
            if each.get(_SUCCESS) != 1:
                why = _text_of(each.get(_FAILURE)) or "it gives no reason"
                reason = f"the flush of task {_text_of(each.get(_TASK))} failed: {why}"
                raise ApiError("gRPC", self._url + _FLUSH_NOW, 0, reason=reason)
        names = tuple(_text_of(each.get(_TASK)) for each in results)
        _log.info("log backup flushed", server=self._url, tasks=names)
        return names


def is_not_offered(error: DataPlaneError) -> bool:
    """True if a TiKV is too old to be asked for a flush, or this process cannot ask."""
    return isinstance(error, ApiError) and error.status == UNIMPLEMENTED


@contextlib.contextmanager
def _typed_errors(url: Address) -> Iterator[None]:
    try:
        yield
    except TransportError as error:
        raise unavailable(error) from error
    except CallRefused as refused:
        raise ApiError("gRPC", url + _FLUSH_NOW, refused.code, b"", shortened(str(refused))) from None


def _results(answer: bytes) -> list[bytes]:
    """Raises NoMessage."""
    return [part for number, part in protobuf.fields(answer) if number == _RESULTS and isinstance(part, bytes)]


def _text_of(value: int | bytes | None) -> str:
    return shortened(value.decode("utf-8", "replace")) if isinstance(value, bytes) else ""
