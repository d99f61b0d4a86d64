"""The stages of one reconcile of a TidbCluster, in order.

First the operator observes every component, only by reads; then the stages act on these observations. A stage that
waits or fails does not stop independent stages: each member checks its own dependencies (lifecycle.md 3.1) in the fresh
status.
"""

from functools import partial

from controllers.decisions import act, decide, seen_of
from controllers.stages import Stage, Steps
from member.components import behaviours, workloads
from member.context import ReconcileContext
from member.failover.outages import AVAILABILITY, judge
from member.lifecycle.component_sync import refused_upgrade
from member.observed.instances import instance_taken
from member.outcome import Refused
from member.volumes import changes as volume_changes
from meta import certificates, labelling, locations, orphan_pods, pvc_cleaner, strange_pods, topology, volumes


def observations() -> tuple[Stage[ReconcileContext], ...]:
    """The observations, in order."""
    return tuple([Stage(behaviour.name, behaviour.observe) for behaviour in behaviours()])


def stages() -> tuple[Stage[ReconcileContext], ...]:
    """The stages that act on observations, in order."""
    return (
        Stage("certificates", certificates.act),
        Stage("pv_reclaim_policy", volumes.act),
        Stage("orphan_pods_cleaner", orphan_pods.act),
        *[Stage(behaviour.name, behaviour.act) for behaviour in behaviours()],
        Stage("strange_pods", strange_pods.act),
        Stage("meta", labelling.act),
        Stage("pvc_cleaner", pvc_cleaner.act),
        Stage("pvc_modifier", volume_changes.act),
    )


def asking() -> tuple[Stage[ReconcileContext], ...]:
    """The stages that read the data plane themselves, from time to time."""
    return (Stage("locations", locations.act), Stage("topology", topology.act))


def run(ctx: ReconcileContext) -> Steps[ReconcileContext]:
    """Observe, detect outages, then act; put the outcome of each stage into `ctx.outcomes`.

    The operator does not act on a component whose observation raised an unexpected exception: its status may be wrong.
    """
    for stage in observations():
        ctx.observations[stage.name] = yield stage
    if taken := instance_taken(ctx):
        # before any write, because selectors cannot be corrected later
        ctx.outcomes["instance"] = taken
        return
    if refused := {name: seen for name, seen in ctx.observations.items() if isinstance(seen, Refused)}:
        # for example the PD of another cluster (F40, I7)
        ctx.outcomes |= refused
        return
    judged = judge(ctx, workloads())
    yield from decide(ctx, partial(_acting, ctx), partial(_seen, ctx))
    yield from act(ctx, asking())
    ctx.outcomes[AVAILABILITY] = judged


def _acting(ctx: ReconcileContext) -> tuple[Stage[ReconcileContext], ...]:
    """The stages, after all components have judged the upgrade: if one refuses it, no pod restarts for it."""
    judged = {workload.name: refused_upgrade(ctx, workload) for workload in workloads()}
    ctx.refused_upgrades = {name: refused for name, refused in judged.items() if refused}
    return stages()


def _seen(ctx: ReconcileContext) -> bytes:
    """The observations without the heartbeats and counts of stores, which differ each time and are judged by PD."""
    stores = [
        (
            store.id,
            store.address,
            store.state_name,
            store.labels,
            store.version,
            store.status_address,
            store.start_timestamp,
        )
        for store in ctx.stores
    ]
    return seen_of(ctx, ctx.pd_url, ctx.unstarted_pd_members, stores)
