"""TiDB's binlogs, which Pump collects: TiDB v8.4.0 and later write none (lifecycle.md 6.6).

A cluster that already runs such a TiDB with a Pump keeps working, and a condition reports what it lacks. The operator
does not upgrade a TiDB that writes binlogs to one that does not: the readers would miss all later changes.
"""

from collections.abc import Mapping

from apis import binlog, images
from apis.accessor import component
from apis.tidbcluster import TidbCluster
from kube.objects import stored_condition
from member.context import ReconcileContext
from member.observed.pods import none_has_image
from member.observed.status import image_of
from member.outcome import Refused

BINLOG_SUPPORTED = "BinlogSupported"
"""The type of the condition."""

_WAY_OUT = "replicate with TiCDC (spec.ticdc), set spec.tidb.binlogEnabled to false, and scale spec.pump.replicas to 0"


def condition(ctx: ReconcileContext) -> Mapping[str, tuple[bool, str, str]]:
    """The condition, by its type, that says if TiDB writes the binlogs that the spec wants; empty if it always has."""
    if said := _lacking(ctx.tc):
        return {BINLOG_SUPPORTED: (False, "BinlogRemoved", f"{said}: Pump gets none; {_WAY_OUT}")}
    known = stored_condition(ctx.owner, BINLOG_SUPPORTED) is not None
    return {BINLOG_SUPPORTED: (True, "Done", "TiDB lacks no binlogs that it is to write")} if known else {}


def refused_upgrade(ctx: ReconcileContext) -> Refused | None:
    """The refusal of a version without binlogs while a version that writes them runs."""
    said, live = _lacking(ctx.tc), ctx.stateful_set("tidb")
    if not said or live is None:
        return None
    image = image_of(live.decode(), "tidb")
    running = images.version_of(image)
    if not binlog.goes(running, component(ctx.tc, "tidb").version):
        return None
    if none_has_image(ctx, "tidb", image):
        # reverting a mistaken version must work
        return None
    what = f"{said}, and {running} does; no pod is restarted for it"
    return Refused("BinlogRemoved", f"{what}. Leave spec.tidb.version at {running}, or {_WAY_OUT}")


def _lacking(tc: TidbCluster) -> str:
    """Why TiDB cannot write the binlogs that the spec wants, as the start of a sentence; empty if it can."""
    tidb = tc.spec.tidb
    if tidb is None or tc.spec.pump is None or not tidb.binlog_enabled:
        return ""
    version = component(tc, "tidb").version
    return f"TiDB {version} writes no binlogs, which {binlog.REMOVED_IN} has removed" if binlog.is_gone(version) else ""
