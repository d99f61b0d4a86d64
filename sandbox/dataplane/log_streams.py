"""TiKV's part of a log backup: streams the writes of a cluster to the storage of its tasks.

The files of a task are below its prefix: `v1/<end>.log`, each with all changes since the previous one, and
`v1/global_checkpoint`, up to which they are complete.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ports.protobuf import fields, message
from sandbox.dataplane.log_backup import LogTask
from sandbox.dataplane.pd.cluster import PdCluster
from sandbox.dataplane.processes import DiskTrouble

CHECKPOINT = "v1/global_checkpoint"
_TROUBLES = (DiskTrouble.FAIL, DiskTrouble.DENY, DiskTrouble.FULL, DiskTrouble.TEAR)
_PUT, _DELETE = b"+", b"-"


@dataclass(frozen=True, slots=True)
class Change:
    """A write of a key at a TSO; a value of None is a deletion."""

    version: int
    key: bytes
    value: bytes | None


def flush(cluster: PdCluster, now: float) -> None:
    """Write the changes of all tasks up to now; a task whose storage fails is paused with the error."""
    if not cluster.streams or cluster.leader is None:
        return
    if not all(map(cluster.stores.is_led, range(len(cluster.stores.regions)))):
        return
    for name, stream in list(cluster.streams.items()):
        task = LogTask(cluster.etcd, name, lambda: now)
        if not task.exists:
            del cluster.streams[name]
        elif task.is_paused:
            continue
        elif stream.disk.trouble in _TROUBLES:
            task.fail(f"failed to write to the external storage: {stream.disk.trouble.value}")
        else:
            until = cluster.tables.now()
            changes = [Change(*change) for change in cluster.tables.content.changes(stream.flushed, until)]
            if changes:
                stream.disk.objects[f"{stream.below}{file_name(until)}"] = packed(changes)
            stream.disk.objects[f"{stream.below}{CHECKPOINT}"] = str(until).encode()
            stream.flushed = until
            task.advance(until)


def flush_now(cluster: PdCluster, store: int, now: float) -> bytes:
    """Flush because a client asks a store to; the content of TiKV's answer, with a result for each running task."""
    tasks = [LogTask(cluster.etcd, name, lambda: now) for name in cluster.streams]
    running = [task for task in tasks if task.exists and not task.is_paused]
    flush(cluster, now)
    failed = {log_task.name for log_task in running if log_task.is_paused}
    if not failed:
        cluster.flushed_at[store] = now
    return message((1, _result(log_task.name, log_task.name in failed)) for log_task in running)


def _result(task: str, failed: bool) -> bytes:
    """A FlushResult: name, success, and the error of a failure."""
    why = [(3, b"failed to write to the external storage")] if failed else []
    return message([(1, task.encode()), (2, int(not failed)), *why])


def file_name(end: int) -> str:
    """The file of the changes up to a TSO; names sort by time."""
    return f"v1/{end:020}.log"


def end_of(name: str) -> int | None:
    """The last TSO of a log file; None for another file."""
    return int(name[3:-4]) if name.startswith("v1/") and name.endswith(".log") else None


def packed(changes: list[Change]) -> bytes:
    """Encode changes as the content of a file."""
    parts = []
    for change in changes:
        kind = _DELETE if change.value is None else _PUT
        parts += [(1, change.version.to_bytes(8, "big") + kind + change.key), (2, change.value or b"")]
    return message(parts)


def unpacked(content: bytes) -> Iterator[Change]:
    """The changes in a file, in order."""
    parts = [value for _, value in fields(content) if isinstance(value, bytes)]
    for head, value in zip(parts[::2], parts[1::2], strict=True):
        yield Change(int.from_bytes(head[:8], "big"), head[9:], value if head[8:9] == _PUT else None)
