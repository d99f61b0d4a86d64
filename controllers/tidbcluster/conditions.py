"""The conditions of a TidbCluster: Ready shows if it serves, Progressing what the operator waits for.

See `controllers.cluster_conditions` and `controllers.conditions`. Components have both as well.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType

from apis.components import TIDB_CLUSTER, component_names
from controllers import unheeded
from controllers.cluster_conditions import (
    components_ready,
    headline,
    pending_changes,
    ready,
    set_component_conditions,
    with_progress,
)
from controllers.conditions import PROGRESSING, READY, ConditionValue, progressing
from member.context import ReconcileContext
from member.outcome import NotDone
from member.tidb import status
from meta import certificates


def conditions(
    ctx: ReconcileContext, now: datetime, commands: Mapping[str, NotDone] = MappingProxyType({})
) -> Mapping[str, ConditionValue]:
    """The conditions of the cluster. Also sets the conditions of its components in the working copy of the status.

    `commands` are the unfinished commands of pods. They come first, because other stages may wait for their restarts.
    """
    parts = components_ready(ctx.tc)
    set_component_conditions(ctx, parts, now)
    named = {*component_names(of=TIDB_CLUSTER), *commands}
    news = progressing({**commands, **ctx.outcomes}, "cluster", named)
    more = {
        **certificates.condition(ctx),
        **status.binlog_condition(ctx),
        **unheeded.conditions(ctx),
        **pending_changes(ctx),
    }
    return {PROGRESSING: news, READY: with_progress(ready(ctx.tc, parts, headline(ctx)), news), **more}
