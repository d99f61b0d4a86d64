"""How a component without data grows and shrinks: those that stay must serve before others go (lifecycle.md 8.7)."""

from apis.accessor import Component, component
from apis.ordinals import desired_replicas
from member.context import ClusterContext
from member.evidence import Evidence, pods_live, spec_confirmed
from member.lifecycle.pod_removal import PodRemoval
from member.lifecycle.scale_in import ScaleIn
from member.lifecycle.scale_out import ScaleOut
from member.lifecycle.scaling import Scaling
from member.naming import ordinal_of
from member.observed.activity import Activity, cached_activity
from member.observed.pods import ready_pods
from member.observed.referenced_cluster import unverified_pd
from member.outcome import Waiting
from member.polling import next_poll


def _drain(removal: PodRemoval) -> Evidence | Waiting:
    """A pod that serves waits for those that stay: no more of them may be down than leave at a time (I18)."""
    ctx, name = removal.ctx, removal.component
    wanted = desired_replicas(ctx.tc, name)
    live = pods_live(ctx, name)
    serving = {ordinal_of(pod.metadata.name) for pod in ready_pods(live.pods) if not pod.metadata.deletion_timestamp}
    staying = sum(ordinal < wanted for ordinal in serving)
    # behind a node that is cut off, it may serve all the same
    unheard = (each for each in live.pods if cached_activity(ctx, name, each) is Activity.UNHEARD)
    may_serve = serving | {ordinal_of(each.metadata.name) for each in unheard}
    if removal.ordinal not in may_serve or staying >= wanted - component(ctx.tc, name).scale_in_parallelism:
        return live
    what = f"keeping pod {removal.name} until more of the {wanted} remaining pods are Ready; {staying} are"
    return Waiting("ScalingIn", what, next_poll(ctx, name))


def _cancel(removal: PodRemoval) -> None:
    removal.clear()


def _spec_confirmed(ctx: ClusterContext, _: str) -> Evidence | None:
    """A volume that is there holds logs at most."""
    return spec_confirmed(ctx)


def scale_in_parallelism(own: Component) -> int:
    """How many pods may go at a time."""
    return own.scale_in_parallelism


def scale_out_parallelism(own: Component) -> int:
    """How many pods may come at a time."""
    return own.scale_out_parallelism


SCALING = Scaling(
    ScaleOut(
        limit=scale_out_parallelism,
        allowed=unverified_pd,
        is_member=lambda _ctx, _pod: True,
        volumes_unused=_spec_confirmed,
    ),
    ScaleIn(limit=scale_in_parallelism, drain=_drain, cancel=_cancel),
)
