"""The present status of TiDB (lifecycle.md 5.5), and whether it writes binlogs (6.6). Reads only.

Pump collects binlogs; TiDB v8.4.0 and later write none. A cluster that already runs such a TiDB with a Pump keeps
working, and a condition reports what it lacks. The operator does not upgrade a TiDB that writes binlogs to one that
does not: the readers would miss all later changes.
"""

from collections.abc import Mapping
from datetime import datetime

from apis import binlog, images
from apis.accessor import component
from apis.component_statuses import TiDBMember
from apis.tidbcluster import TidbCluster
from dataplane.errors import BadTlsMaterial
from kube.objects import stored_condition
from member import api_clients, labels
from member.context import ReconcileContext
from member.observed.pod import Pod
from member.observed.pods import none_has_image
from member.observed.status import ask_all, image_of, observe_pods, server_pods, transition_time
from member.outcome import Done, Failed, Outcome, Refused
from member.tidb.failover import ignored_pods


def observe(ctx: ReconcileContext) -> Outcome:
    """Update `status.tidb`. A server without a running pod is not asked: it cannot be healthy."""
    if ctx.tc.spec.tidb is None:
        return Done()
    status = ctx.status.tidb
    status.selector = _selector(ctx)
    pods = observe_pods(ctx, "tidb", status, ignored_pods(ctx))
    if pods is None:
        status.members = {}
        return Done()
    names = server_pods(ctx, "tidb", pods)
    try:
        status.members = _members(ctx, names, {pod.metadata.name: pod.decode_as(Pod) for pod in pods})
    except BadTlsMaterial as error:
        return Failed("BadTLS", str(error))
    return Done()


def _selector(ctx: ReconcileContext) -> str:
    """The pods' label selector for autoscalers, for clusters that ask for it: no other status changes."""
    wanted = ctx.tc.metadata.annotations.get(labels.TIDB_SCALE_SELECTOR) == "true"
    return labels.selector_text(labels.base_labels(ctx.tc, "tidb")) if wanted else ""


def _members(ctx: ReconcileContext, names: list[str], pods: Mapping[str, Pod]) -> dict[str, TiDBMember]:
    """The present state of every server."""
    clock, before = ctx.deps.clock, ctx.status.tidb.members

    running = [name for name in names if (pod := pods.get(name)) and pod.has_started("tidb")]
    servers = {name: api_clients.tidb(ctx, name) for name in running}

    def ask(name: str, timeout: float) -> TiDBMember:
        health = name in servers and servers[name].healthy(timeout)
        return _member(name, health, pods.get(name), before.get(name), clock.wall())

    return ask_all(ctx, names, ctx.status.tidb.servers, ask)


def _member(name: str, health: bool, pod: Pod | None, old: TiDBMember | None, now: datetime) -> TiDBMember:
    node = pod.spec.node_name if pod else ""
    return TiDBMember(
        name=name,
        health=health,
        node=node or (old.node if old else ""),
        last_transition_time=transition_time(old, old is not None and old.health == health, now),
    )


BINLOG_SUPPORTED = "BinlogSupported"
"""The type of the condition."""

_WAY_OUT = "replicate with TiCDC (spec.ticdc), set spec.tidb.binlogEnabled to false, and scale spec.pump.replicas to 0"


def binlog_condition(ctx: ReconcileContext) -> Mapping[str, tuple[bool, str, str]]:
    """The condition, by its type, that says if TiDB writes the binlogs that the spec wants; empty if it always has."""
    if lacking := _lacking(ctx.tc):
        return {BINLOG_SUPPORTED: (False, "BinlogRemoved", f"{lacking}: Pump gets none; {_WAY_OUT}")}
    known = stored_condition(ctx.owner, BINLOG_SUPPORTED) is not None
    return {BINLOG_SUPPORTED: (True, "Done", "TiDB lacks no binlogs that it is to write")} if known else {}


def refused_upgrade(ctx: ReconcileContext) -> Refused | None:
    """The refusal of a version without binlogs while a version that writes them runs."""
    lacking, live = _lacking(ctx.tc), ctx.stateful_set("tidb")
    if not lacking or live is None:
        return None
    image = image_of(live.decode(), "tidb")
    running = images.version_of(image)
    if not binlog.goes(running, component(ctx.tc, "tidb").version):
        return None
    if none_has_image(ctx, "tidb", image):
        # reverting a mistaken version must work
        return None
    what = f"{lacking}, and {running} does; no pod is restarted for it"
    return Refused("BinlogRemoved", f"{what}. Leave spec.tidb.version at {running}, or {_WAY_OUT}")


def _lacking(tc: TidbCluster) -> str:
    """Why TiDB cannot write the binlogs that the spec wants, as the start of a sentence; empty if it can."""
    tidb = tc.spec.tidb
    if tidb is None or tc.spec.pump is None or not tidb.binlog_enabled:
        return ""
    version = component(tc, "tidb").version
    return f"TiDB {version} writes no binlogs, which {binlog.REMOVED_IN} has removed" if binlog.is_gone(version) else ""
