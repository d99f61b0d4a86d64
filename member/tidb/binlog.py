"""TiDB's binlogs, which Pump collects: TiDB v8.4.0 and later have none (lifecycle.md 6.6).

A cluster that already runs such a TiDB beside a Pump goes on, and a condition says what it lacks. What writes binlogs
is not upgraded to what does not: those who read them would miss all that is written from then on.
"""

from collections.abc import Mapping

from apis import binlog, images
from apis.accessor import component
from apis.tidbcluster import TidbCluster
from kube.objects import Json, stored_condition
from member.context import ReconcileContext
from member.observed.pods import none_has_image
from member.observed.status import image_of
from member.outcome import Refused

BINLOG_SUPPORTED = "BinlogSupported"
"""The type of the condition."""

_WAY_OUT = "replicate with TiCDC (spec.ticdc), set spec.tidb.binlogEnabled to false, and scale spec.pump.replicas to 0"


def condition(ctx: ReconcileContext) -> Mapping[str, tuple[bool, str, str]]:
    """Whether TiDB writes the binlogs that it is to write, as a condition by its type; empty where it always did."""
    if said := _lacking(ctx.tc):
        return {BINLOG_SUPPORTED: (False, "BinlogRemoved", f"{said}: Pump gets none; {_WAY_OUT}")}
    known = stored_condition(ctx.owner, BINLOG_SUPPORTED) is not None
    return {BINLOG_SUPPORTED: (True, "Done", "TiDB lacks no binlogs that it is to write")} if known else {}


def refused_upgrade(ctx: ReconcileContext, live: Json, desired: Json) -> Refused | None:
    """The refusal of a version without binlogs where one that writes them runs."""
    said = _lacking(ctx.tc)
    running, wanted = (images.version_of(image_of(tree, "tidb")) for tree in (live, desired))
    if not said or not binlog.goes(running, wanted):
        return None
    if none_has_image(ctx, "tidb", image_of(live, "tidb")):
        # the way back from a mistake
        return None
    what = f"{said}, and {running} does; no pod is restarted for it"
    return Refused("BinlogRemoved", f"{what}. Leave spec.tidb.version at {running}, or {_WAY_OUT}")


def _lacking(tc: TidbCluster) -> str:
    """What a TiDB that is to write binlogs cannot, as the first part of a sentence; empty when nothing."""
    tidb = tc.spec.tidb
    if tidb is None or tc.spec.pump is None or not tidb.binlog_enabled:
        return ""
    version = component(tc, "tidb").version
    return f"TiDB {version} writes no binlogs, which {binlog.REMOVED_IN} has removed" if binlog.is_gone(version) else ""
