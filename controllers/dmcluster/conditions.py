"""The conditions of a DMCluster: Ready shows if it serves (other-resources.md 6.2), Progressing what it waits for.

See `controllers.cluster_conditions` and `controllers.conditions`. Components have both as well.
"""

from collections.abc import Mapping
from datetime import datetime

from apis.components import DM_CLUSTER, component_names
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
from member.context import DMContext
from meta import certificates


def conditions(ctx: DMContext, now: datetime) -> Mapping[str, ConditionValue]:
    """The conditions of the cluster. Also sets the conditions of its components in the working copy of the status."""
    parts = components_ready(ctx.tc)
    set_component_conditions(ctx, parts, now)
    news = progressing(ctx.outcomes, "cluster", component_names(of=DM_CLUSTER))
    more = {**certificates.condition(ctx), **unheeded.conditions(ctx), **pending_changes(ctx)}
    return {PROGRESSING: news, READY: with_progress(_ready(ctx, parts), news), **more}


def _ready(ctx: DMContext, parts: Mapping[str, ConditionValue]) -> ConditionValue:
    if ctx.status.master.stateful_set is None:
        return False, "StatefulSetNotUpToDate", "Statefulset(s) are in progress"
    return ready(ctx.tc, parts, headline(ctx), "DM cluster")
