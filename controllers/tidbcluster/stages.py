"""What one reconcile of a TidbCluster does, in order.

First every component is observed, with reads alone; then the stages act, each on what was seen in this same reconcile.
A stage that waits or fails never stops one that does not depend on it: the gates between components are the members'
own (lifecycle.md 3.1) and are judged on the fresh status.
"""

from functools import partial

from controllers.decisions import act, decide, seen_of
from controllers.stages import Attempt, Stage
from member.components import behaviours, workloads
from member.context import ReconcileContext
from member.failover.outages import AVAILABILITY, judge
from member.observed.instances import instance_taken
from member.outcome import Refused
from member.volumes import changes as volume_changes
from meta import certificates, labelling, locations, orphan_pods, pvc_cleaner, strange_pods, topology, volumes


def observations() -> tuple[Stage[ReconcileContext], ...]:
    """What is looked at first, in order."""
    return tuple(Stage(each.name, each.observe) for each in behaviours())


def stages() -> tuple[Stage[ReconcileContext], ...]:
    """What acts, in order."""
    return (
        Stage("certificates", certificates.act),
        Stage("pv_reclaim_policy", volumes.act),
        Stage("orphan_pods_cleaner", orphan_pods.act),
        *(Stage(each.name, each.act) for each in behaviours()),
        Stage("strange_pods", strange_pods.act),
        Stage("meta", labelling.act),
        Stage("pvc_cleaner", pvc_cleaner.act),
        Stage("pvc_modifier", volume_changes.act),
    )


def asking() -> tuple[Stage[ReconcileContext], ...]:
    """What acts on what it asks the data plane itself, from time to time."""
    return (Stage("locations", locations.act), Stage("topology", topology.act))


def run(ctx: ReconcileContext, attempt: Attempt[ReconcileContext]) -> None:
    """Observe, judge what is out of service, then act; what each stage answered is left in `ctx.outcomes`.

    A component whose observation broke off in the middle is not acted on: what its status says is not known to hold.
    """
    for stage in observations():
        ctx.observations[stage.name] = attempt(stage, ctx)
    if taken := instance_taken(ctx):
        # before anything is written, since selectors cannot be corrected later
        ctx.outcomes["instance"] = taken
        return
    if refused := {name: seen for name, seen in ctx.observations.items() if isinstance(seen, Refused)}:
        # such as another cluster's PD (F40, I7)
        ctx.outcomes |= refused
        return
    judged = judge(ctx, workloads())
    decide(ctx, stages(), attempt, partial(_seen, ctx))
    act(ctx, asking(), attempt)
    ctx.outcomes[AVAILABILITY] = judged


def _seen(ctx: ReconcileContext) -> bytes:
    """What was observed, without the heartbeats and counts of stores: those differ each time, and PD judges them."""
    stores = [
        (each.id, each.address, each.state_name, each.labels, each.version, each.status_address, each.start_timestamp)
        for each in ctx.stores
    ]
    return seen_of(ctx, ctx.pd_url, ctx.unstarted_pd_members, stores)
