"""The stages of one reconcile of a DMCluster, in order (other-resources.md 6.3).

As for a TidbCluster, the operator first observes every component, only by reads; then the stages act on these
observations. A stage that waits or fails does not stop independent stages.
"""

from functools import partial

from apis.components import DM_CLUSTER
from controllers.decisions import decide, seen_of
from controllers.stages import Stage, Steps
from member.components import behaviours, workloads
from member.context import DMContext
from member.failover.outages import AVAILABILITY, judge
from member.volumes import changes as volume_changes
from meta import certificates, labelling, orphan_pods, pvc_cleaner, strange_pods, volumes


def observations() -> tuple[Stage[DMContext], ...]:
    """The observations, in order."""
    return tuple([Stage(behaviour.name, behaviour.observe) for behaviour in behaviours(DM_CLUSTER)])


def stages() -> tuple[Stage[DMContext], ...]:
    """The stages that act on observations, in order."""
    return (
        Stage("certificates", certificates.act),
        Stage("pv_reclaim_policy", volumes.act),
        Stage("orphan_pods_cleaner", orphan_pods.act),
        *[Stage(behaviour.name, behaviour.act) for behaviour in behaviours(DM_CLUSTER)],
        Stage("strange_pods", strange_pods.act),
        Stage("meta", labelling.act),
        Stage("pvc_cleaner", pvc_cleaner.act),
        Stage("pvc_modifier", volume_changes.act),
    )


def run(ctx: DMContext) -> Steps[DMContext]:
    """Observe, detect outages, then act; put the outcome of each stage into `ctx.outcomes`."""
    for stage in observations():
        ctx.observations[stage.name] = yield stage
    judged = judge(ctx, workloads(DM_CLUSTER))
    yield from decide(ctx, stages, partial(seen_of, ctx))
    ctx.outcomes[AVAILABILITY] = judged
