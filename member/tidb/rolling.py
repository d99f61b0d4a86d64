"""Rolling restarts of TiDB: servers close their connections themselves, and users' DDL pauses (lifecycle.md 7.6).

Annotations on the TidbCluster record the pause: the operator writes them before it asks TiDB to `start`, and adds the
time after TiDB has agreed (F26). So annotations mean that DDL may be paused, and the time means that it is paused. The
operator removes them after TiDB has agreed to `finish`. A user who replaces the TidbCluster removes them, too: so this
process remembers them.
"""

from collections.abc import Mapping

from apis.images import NEWEST, order, version_of
from apis.times import stamp
from dataplane.tidb import TiDBClient
from kube.actions import Annotate, Emit
from kube.events import WARNING
from kube.objects import Json, Object, is_observed
from kube.resources import TIDB_CLUSTERS
from member import api_clients, labels
from member.actions import PauseDDL, ResumeDDL
from member.context import ReconcileContext
from member.labels import CONTROLLER_REVISION_HASH
from member.lifecycle.rolling import Rolling
from member.observed.pods import pods_of, wanted_pods
from member.observed.status import image_of
from member.outcome import Waiting
from member.polling import next_poll
from member.tidb import status as tidb_status
from member.tidb.failover import ignored_pods

_ANNOTATIONS = (
    labels.SMOOTH_UPGRADE_DDL_PAUSED,
    labels.SMOOTH_UPGRADE_SOURCE_VERSION,
    labels.SMOOTH_UPGRADE_TARGET_VERSION,
    labels.SMOOTH_UPGRADE_STARTED_AT,
)

_FIRST_LTS, _BEYOND_LTS, _FIRST = (7, 1, 2), (7, 2, 0), (7, 4, 0)


def can_pause(source: str, target: str) -> bool:
    """True if TiDB's servers can pause DDL for an upgrade between these versions; both need a leading v."""
    if not (source.startswith("v") and target.startswith("v")):
        return False
    old, new = order(source), order(target)
    if NEWEST in (old, new) or new <= old:
        return False
    from_lts = _FIRST_LTS <= old < _BEYOND_LTS
    within_lts = from_lts and _FIRST_LTS <= new < _BEYOND_LTS
    return within_lts or ((from_lts or old >= _FIRST) and new >= _FIRST)


async def begin(ctx: ReconcileContext, pod: Object) -> Waiting | None:
    """Pause DDL before a server restarts with another version. Raises DataPlaneError, ApiError, TransportError.

    Runs after the write of the template: if the API server rejects the template, DDL would be paused without effect.
    Without a healthy server it pauses nothing and emits an event: the new version may be the repair (F11).
    """
    live = ctx.stateful_set("tidb")
    if live is None:
        return None
    source, target = version_of(_image_of(pod)), version_of(image_of(live.decode(), "tidb"))
    marks, server = _marks(ctx), _server(ctx)
    wanted = {
        labels.SMOOTH_UPGRADE_DDL_PAUSED: "true",
        labels.SMOOTH_UPGRADE_SOURCE_VERSION: source,
        labels.SMOOTH_UPGRADE_TARGET_VERSION: target,
    }
    # servers that a former upgrade has left out may have different versions
    is_this = marks.get(labels.SMOOTH_UPGRADE_TARGET_VERSION) == target
    if source == target:
        return None
    if server is None:
        await _tell_not_paused(ctx, source, target)
        return None
    if marks and not is_this:
        await _end(ctx, server)
        return Waiting("ResumingDDL", "another upgrade has begun; resuming DDL before pausing it again")
    if labels.SMOOTH_UPGRADE_STARTED_AT in marks or not can_pause(source, target):
        return None
    # includes what the cache already shows: the write fails if the cache is outdated
    await _write(ctx, wanted)
    await PauseDDL(server)
    await _write(ctx, {**wanted, labels.SMOOTH_UPGRADE_STARTED_AT: stamp(ctx.deps.clock.wall())})
    return None


_TOLD_AGAIN = 600.0
"""Seconds until an event reports again that DDL is not paused."""


async def _tell_not_paused(ctx: ReconcileContext, source: str, target: str) -> None:
    if labels.SMOOTH_UPGRADE_STARTED_AT in _marks(ctx) or not can_pause(source, target):
        return
    if ctx.memory.stopwatches.is_due("DDL not paused", target, _TOLD_AGAIN, ctx.deps.clock):
        what = f"DDL is not paused while TiDB is upgraded from {source} to {target}: no server that could pause it is"
        await Emit(ctx.owner, WARNING, "DDLNotPaused", f"{what} healthy; run no DDL before all servers are upgraded")


async def _announce(ctx: ReconcileContext, name: str) -> Waiting | None:
    """Pause DDL before a broken server gets another version; of a missing one, another server shows the version."""
    pods, live = pods_of(ctx, "tidb"), ctx.stateful_set("tidb")
    wanted = image_of(live.decode(), "tidb") if live else ""
    found = [pod for pod in pods if pod.metadata.name == name]
    shown = next(iter(found or [pod for pod in pods if _image_of(pod) != wanted]), None)
    return await begin(ctx, shown) if shown else None


def _image_of(pod: Object) -> str:
    """The image of the TiDB container in a pod; empty if there is none."""
    return next(
        (container["image"] for container in pod.decode()["spec"]["containers"] if container["name"] == "tidb"), ""
    )


async def finish(ctx: ReconcileContext) -> Waiting | None:
    """Resume DDL when all servers run the newest template and are healthy (I39). Raises the same errors as `begin`.

    Lost servers with substitutes do not delay it (F13). If no server is wanted, no DDL runs; it resumes with the first
    server that is wanted again.
    """
    if not _marks(ctx) or not wanted_pods(ctx, "tidb"):
        return None
    live, server = ctx.stateful_set("tidb"), _server(ctx)
    awaited = _awaited(ctx, live.decode()) if live is not None else ()
    if server is None or live is None or awaited:
        what = "DDL is paused until all servers are upgraded and healthy"
        waits_for = f"; waiting for {', '.join(awaited)}" if awaited else ""
        return Waiting("DDLPaused", f"{what}{waits_for}", next_poll(ctx, "tidb"))
    await _end(ctx, server)
    return None


def _awaited(ctx: ReconcileContext, live: Json) -> list[str]:
    """The servers that are not healthy or do not run the newest template; all servers if that is unknown."""
    status, seen = ctx.status.tidb, live.get("status") or {}
    wanted = wanted_pods(ctx, "tidb")
    if not status.is_current or not is_observed(live):
        return wanted
    revisions = {pod.metadata.name: pod.metadata.labels.get(CONTROLLER_REVISION_HASH) for pod in pods_of(ctx, "tidb")}
    healthy = {name for name, member in status.members.items() if member.health}
    lost = set(status.failed_pods) - healthy
    upgraded = {name for name, revision in revisions.items() if revision == seen.get("updateRevision")}
    return sorted({*wanted, *revisions} - lost - (healthy & upgraded))


async def _end(ctx: ReconcileContext, server: TiDBClient) -> None:
    await ResumeDDL(server)
    await _write(ctx, {})


def _server(ctx: ReconcileContext) -> TiDBClient | None:
    """The healthy server with the lowest ordinal."""
    members = ctx.status.tidb.members
    healthy = (name for name in wanted_pods(ctx, "tidb") if name in members and members[name].health)
    return next((api_clients.tidb(ctx, name) for name in healthy), None)


def _marks(ctx: ReconcileContext) -> Mapping[str, str]:
    found = {key: value for key, value in ctx.tc.metadata.annotations.items() if key in _ANNOTATIONS}
    ctx.memory.ddl_marks = found or ctx.memory.ddl_marks
    return ctx.memory.ddl_marks


async def _write(ctx: ReconcileContext, marks: Mapping[str, str]) -> None:
    """Replace the operator's annotations on the TidbCluster by these, without touching the spec (I30)."""
    there = ctx.owner.metadata.annotations
    annotations = {key: marks.get(key) for key in _ANNOTATIONS if key in marks or key in there}
    ctx.owner = await Annotate(TIDB_CLUSTERS, ctx.owner, annotations)
    ctx.memory.ddl_marks = marks


def _unmet_condition(ctx: ReconcileContext, pod: Object) -> str:
    member = ctx.status.tidb.members.get(pod.metadata.name)
    return "" if member and member.health else "serves"


ROLLING = Rolling(
    unmet_condition=_unmet_condition,
    refused_upgrade=tidb_status.refused_upgrade,
    prepare=begin,
    announce=_announce,
    ignored_pods=ignored_pods,
    finish=finish,
)
