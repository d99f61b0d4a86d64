"""Scaling of components without data: remaining pods must serve before others leave (lifecycle.md 8.7)."""

from apis.accessor import Component, component
from apis.ordinals import desired_ordinals
from member.context import ClusterContext
from member.evidence import Evidence, pods_live, spec_confirmed
from member.lifecycle.pod_removal import PodRemoval
from member.lifecycle.scaling import ScaleIn, ScaleOut, Scaling
from member.naming import ordinal_of
from member.observed.nodes import Activity, cached_activity
from member.observed.pods import ready_pods
from member.observed.referenced_cluster import unverified_pd
from member.outcome import Waiting
from member.polling import next_poll


async def _drain(removal: PodRemoval) -> Evidence | Waiting:
    """Keep a serving pod until enough remaining pods are Ready: at most the parallelism may be missing (I18)."""
    ctx, name = removal.ctx, removal.component
    stay = desired_ordinals(ctx.tc, name)
    wanted = stay.replicas
    live = pods_live(ctx, name)
    serving = {ordinal_of(pod.metadata.name) for pod in ready_pods(live.pods) if not pod.metadata.deletion_timestamp}
    staying = sum(ordinal in stay for ordinal in serving)
    # a pod behind a cut-off node may still serve
    unheard = (each for each in live.pods if cached_activity(ctx, name, each) is Activity.UNHEARD)
    may_serve = serving | {ordinal_of(obj.metadata.name) for obj in unheard}
    if removal.ordinal not in may_serve or staying >= wanted - component(ctx.tc, name).scale_in_parallelism:
        return live
    what = f"keeping pod {removal.name} until more of the {wanted} remaining pods are Ready; {staying} are"
    return Waiting("ScalingIn", what, next_poll(ctx, name))


async def _cancel(removal: PodRemoval) -> None:
    await removal.clear()


def _spec_confirmed(ctx: ClusterContext, _: str) -> Evidence | None:
    """Evidence that a volume may be deleted: it holds logs at most."""
    return spec_confirmed(ctx)


def scale_in_parallelism(own: Component) -> int:
    """How many pods may leave at a time."""
    return own.scale_in_parallelism


def scale_out_parallelism(own: Component) -> int:
    """How many pods may start at a time."""
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
