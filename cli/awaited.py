"""The objects that a demonstration waits for: clusters that become Ready; Jobs, Backups and Restores that succeed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from apis.cluster import Cluster
from apis.decoding import decode
from apis.dmcluster import DMCluster
from apis.tidbcluster import TidbCluster
from cli.progress import Row, blocked_by, is_ready, rows, waits_for
from kube.objects import Json, Object, condition_of
from kube.resources import (
    BACKUPS,
    DM_CLUSTERS,
    JOBS,
    RESTORES,
    TIDB_CLUSTERS,
    TIDB_DASHBOARDS,
    TIDB_INITIALIZERS,
    TIDB_MONITORS,
    TIDB_NG_MONITORINGS,
    Resource,
)


@dataclass(frozen=True, slots=True)
class Sight:
    """The state of an object. `why` is what it waits for; `blocked` is why it needs the user, if it does."""

    rows: Sequence[Row]
    is_done: bool
    why: str = ""
    blocked: str = ""


def see(resource: Resource, found: Object) -> Sight:
    """The state of an object of one of these kinds."""
    return _SEE[resource](found.decode())


def _tidb_cluster(tree: Json) -> Sight:
    return _cluster(decode(tree, TidbCluster))


def _dm_cluster(tree: Json) -> Sight:
    return _cluster(decode(tree, DMCluster))


def _cluster(cluster: Cluster) -> Sight:
    return Sight(rows(cluster), is_ready(cluster), waits_for(cluster), blocked_by(cluster) or "")


def _job(tree: Json) -> Sight:
    conditions = (tree.get("status") or {}).get("conditions") or ()
    is_done = condition_of(conditions, "Complete").get("status") == "True"
    failed = condition_of(conditions, "Failed")
    state = "done" if is_done else str(failed.get("message") or "") or "at work"
    row = Row("job", int(is_done), 1, state)
    return Sight([row], is_done, state, state if failed.get("status") == "True" else "")


def _backup(tree: Json) -> Sight:
    """The state of a Backup or Restore."""
    status = tree.get("status") or {}
    phase = str(status.get("phase") or "")
    state = _described(status, phase) or "the operator has not looked at it yet"
    is_done = phase == "Complete"
    row = Row(str(tree["kind"]).lower(), int(is_done), 1, state)
    return Sight([row], is_done, state, state if phase in ("Failed", "Invalid") else "")


def _described(status: Json, phase: str) -> str:
    """The phase with the progress of its step, its result, or the reason of a failure."""
    message = condition_of(status.get("conditions") or (), phase).get("message") or ""
    if phase == "Running" and (progresses := status.get("progresses")):
        message = f"{progresses[-1]['step']} {progresses[-1]['progress']:.0f} %"
    if phase == "Complete":
        size = status.get("backupSizeReadable")
        message = ", ".join(filter(None, (size, f"took {status.get('timeTaken')}", f"as of {status.get('commitTs')}")))
    return f"{phase}: {message}" if message else phase


def _by_conditions(tree: Json) -> Sight:
    """The state of an object with the conditions Ready and Progressing."""
    conditions = (tree.get("status") or {}).get("conditions") or ()
    ready, progressing = (condition_of(conditions, kind) for kind in ("Ready", "Progressing"))
    state = f"{ready.get('reason')}: {ready.get('message')}" if ready else "the operator has not looked at it yet"
    is_done = ready.get("status") == "True"
    needs_user = progressing.get("status") == "False" and not is_done
    row = Row(str(tree["kind"]).lower(), int(is_done), 1, state)
    return Sight([row], is_done, state, str(progressing.get("message") or "") if needs_user else "")


_SEE: Mapping[Resource, Callable[[Json], Sight]] = {
    TIDB_CLUSTERS: _tidb_cluster,
    DM_CLUSTERS: _dm_cluster,
    JOBS: _job,
    BACKUPS: _backup,
    RESTORES: _backup,
    TIDB_INITIALIZERS: _by_conditions,
    TIDB_MONITORS: _by_conditions,
    TIDB_DASHBOARDS: _by_conditions,
    TIDB_NG_MONITORINGS: _by_conditions,
}

AWAITED: Mapping[str, Resource] = {resource.kind: resource for resource in _SEE}
"""The resources by kind."""

WORK = frozenset({JOBS, BACKUPS, RESTORES})
"""Kinds that start once the documents before them in the file are finished."""
