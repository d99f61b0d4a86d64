"""When pods are restarted though those in them do not report how they are (lifecycle.md 6.1 step 11)."""

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
"""What a user can set where the operator waits for a component that does not answer."""


def forced(ctx: ClusterContext, component: str, *, alone: bool, ask: Callable[[str], object]) -> Evidence | None:
    """Evidence that a component does not report its members, where its pods are restarted all the same.

    The user asks for that by annotation. A member that is `alone` has no quorum to lose, but it may serve, and the new
    image may be broken. So it is kept, unless nothing listens at its port, or TLS is being switched, when it can answer
    no call. `ask` calls the member of a pod. It is kept in any case while certificates are missing or of no use, since
    its new pod needs them, and while its node is cut off.
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
    """Whether a pod mounts the certificate of its component though the cluster has TLS off, or the reverse."""
    pods = (pod.decode_as(PodWithVolumes).spec.volumes for pod in pods_of(ctx, component))
    return any((f"{component}-tls" in {each.name for each in volumes}) != tls_enabled(ctx.tc) for volumes in pods)


def _is_closed(ask: Callable[[str], object], pod: str) -> bool:
    """Whether nothing listens at the port of a member, as while its start script waits."""
    try:
        ask(pod)
    except Unavailable as error:
        return isinstance(error.cause, ConnectionRefused)
    except DataPlaneError:
        pass
    return False
