"""Restarts of pods whose members do not report their state (lifecycle.md 6.1 step 11)."""

from collections.abc import Callable

from apis.identity import tls_enabled
from dataplane.errors import DataPlaneError, Unavailable
from member import labels
from member.context import ClusterContext
from member.evidence import Evidence, unobservable
from member.observed.activity import Activity, cached_activity
from member.observed.claims import PodWithVolumes
from member.observed.pods import pods_of
from member.outcome import Done, Refused
from ports.transport import ConnectionRefused

WAY_OUT = f'the annotation {labels.FORCE_UPGRADE}: "true"'
"""What users can set if the operator waits for a component that does not answer."""


def forced(ctx: ClusterContext, component: str, *, alone: bool, ask: Callable[[str], object]) -> Evidence | None:
    """Evidence that a component does not report its members, if its pods may be restarted nevertheless; else None.

    The user allows that with the annotation. Without it, only a member that is `alone` may be restarted, as it has no
    quorum to lose. It may still serve, and the new image may be broken, so two cases qualify: nothing listens at its
    port, or TLS is being switched, during which it can answer no call. `ask` calls the member of a pod.

    Without the annotation a lone member stays while its node is cut off, or while certificates that its new pod needs
    are missing or unusable.
    """
    if ctx.tc.metadata.annotations.get(labels.FORCE_UPGRADE) == "true":
        return unobservable(ctx, component)
    lacks_certificates = isinstance(ctx.outcomes.get("certificates", Done()), Refused)
    if not alone or lacks_certificates:
        return None
    pods = pods_of(ctx, component)
    if any(cached_activity(ctx, component, pod) is Activity.UNHEARD for pod in pods):
        return None
    if _switches_tls(ctx, component) or all(_is_closed(ask, pod.metadata.name) for pod in pods):
        return unobservable(ctx, component)
    return None


def _switches_tls(ctx: ClusterContext, component: str) -> bool:
    """True if a pod mounts its component's certificate though the cluster has TLS off, or lacks it though TLS is on."""
    pods = (pod.decode_as(PodWithVolumes).spec.volumes for pod in pods_of(ctx, component))
    return any((f"{component}-tls" in {each.name for each in volumes}) != tls_enabled(ctx.tc) for volumes in pods)


def _is_closed(ask: Callable[[str], object], pod: str) -> bool:
    """True if nothing listens at a member's port, as while its start script waits."""
    try:
        ask(pod)
    except Unavailable as error:
        return isinstance(error.cause, ConnectionRefused)
    except DataPlaneError:
        pass
    return False
