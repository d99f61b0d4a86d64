"""`br log`: starts, pauses, resumes, stops and truncates the log that TiKV streams to a storage (see `log_streams`)."""

from ports.protobuf import message
from sandbox.dataplane.br import meta
from sandbox.dataplane.br.run import Failed, Run
from sandbox.dataplane.disk_files import DiskFiles
from sandbox.dataplane.log_backup import LogTask, task_names
from sandbox.dataplane.log_streams import CHECKPOINT, end_of
from sandbox.dataplane.pd.cluster import LogStream

_CLUSTER_ID, _START_VERSION = 1, 5


def start(run: Run) -> None:
    """Start a task. Raises Failed, OSError."""
    cluster = run.cluster()
    if there := task_names(cluster.etcd, run.surroundings.clock.now()):
        raise Failed(f"[BR:Stream:ErrStreamLogTaskExist]stream task already exists: {there[0]}")
    if not isinstance(run.files, DiskFiles):
        raise Failed("TiKV of the sandbox streams to volumes and buckets of the sandbox alone")
    begins = run.moment("start-ts") or cluster.tables.now()
    run.files.write(meta.NAME, message([(_CLUSTER_ID, cluster.id), (_START_VERSION, begins)]))
    run.files.write(CHECKPOINT, str(begins).encode())
    cluster.streams[run.request.option("task-name")] = LogStream(run.files.disk, run.files.below, begins)
    _task(run).begin(begins)
    run.note("INFO", "log start success")


def pause(run: Run) -> None:
    """Pause a task. Raises Failed."""
    _existing(run).pause()
    run.note("INFO", "log pause success")


def resume(run: Run) -> None:
    """Resume a task. Raises Failed."""
    _existing(run).resume()
    run.note("INFO", "log resume success")


def stop(run: Run) -> None:
    """Stop a task; its files stay. Raises Failed."""
    _existing(run).stop()
    run.note("INFO", "log stop success")


def truncate(run: Run) -> None:
    """Remove the log before a timestamp. Raises OSError."""
    until = run.moment("until")
    old = [name for name in run.files.names() if (end := end_of(name)) is not None and end <= until]
    run.files.delete(old)
    run.note("INFO", "log truncate success", f"removed={len(old)}")


def _task(run: Run) -> LogTask:
    return LogTask(run.cluster().etcd, run.request.option("task-name"), run.surroundings.clock.now)


def _existing(run: Run) -> LogTask:
    task = _task(run)
    if not task.exists:
        raise Failed(f"[BR:Stream:ErrStreamLogTaskNotExist]task {task.name} not found")
    return task
