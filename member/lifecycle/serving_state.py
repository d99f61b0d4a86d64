"""What a component lacks to serve as the spec demands."""

from apis import predicates
from apis.ordinals import desired_ordinals, desired_replicas
from member.context import ClusterContext
from member.lifecycle.workload import Workload, members_ready
from member.naming import member_name, pod_name
from member.observed.claims import volume_being_deleted
from member.observed.nodes import kept_by_lost_nodes
from member.observed.pods import pods_of, ready_pods
from member.observed.troubles import LOOK_AGAIN, troubles_of
from member.outcome import Done, Outcome, Waiting
from member.polling import next_poll


def serving_state(ctx: ClusterContext, member: Workload) -> Outcome:
    """Done if the component serves as the spec demands; else what it lacks."""
    wanted = desired_replicas(ctx.tc, member.name)
    ready = len(ready_pods(pods_of(ctx, member.name)))
    if ready < wanted:
        names = [pod_name(ctx.tc, member.name, ordinal) for ordinal in desired_ordinals(ctx.tc, member.name)]
        troubles = troubles_of(ctx, member.name, names)
        missing = "; ".join(f"{name} ({trouble})" if trouble else name for name, trouble in troubles.items())
        # events report what keeps a pod from starting, but no event reports the state of the data plane
        again = next_poll(ctx, member.name) if all(troubles.values()) else LOOK_AGAIN
        what = f"{ready} of {wanted} pods are Ready; waiting for {missing}"
        return kept_by_lost_nodes(ctx, member.name, what) or Waiting("PodsNotReady", what, again)
    observed = ctx.observations.get(member.name, Done())
    if not isinstance(observed, Done):
        return observed
    if at_risk := volume_being_deleted(ctx, member.name):
        return at_risk
    if without_pods := _lacks_pods(ctx, member.name, wanted):
        return without_pods
    served = member.serving(ctx) if member.serving else members_ready(ctx, member.name)
    # the data plane may still count a server whose pod is about to go
    return served if isinstance(served, Done) else kept_by_lost_nodes(ctx, member.name, served.message) or served


def _lacks_pods(ctx: ClusterContext, component: str, wanted: int) -> Waiting | None:
    """The wait for a recreated StatefulSet to adopt the existing pods."""
    counted = predicates.counted_pods(ctx.tc, component)
    if counted >= wanted:
        return None
    what = f"StatefulSet {member_name(ctx.tc, component)} has {counted} of {wanted} pods"
    return Waiting("PodsNotReady", what, next_poll(ctx, component))
