"""The pods of a component, from the caches or live."""

from collections.abc import Sequence

from apis.ordinals import desired_ordinals
from kube.objects import Object
from kube.resources import PODS
from member.context import ClusterContext
from member.labels import base_labels, selector_text
from member.naming import pod_name
from member.observed.belonging import controls, is_own_pod
from member.observed.pod import Pod


def pods_of(ctx: ClusterContext, kind: str) -> Sequence[Object]:
    """The cached pods of a component, by name; none while a foreign StatefulSet has the component's name."""
    if kind not in ctx.pods:
        ctx.pods[kind] = _cached(ctx, kind)
    return ctx.pods[kind]


def _cached(ctx: ClusterContext, kind: str) -> Sequence[Object]:
    live = ctx.stateful_set(kind)
    if live is not None and not controls(ctx.owner.metadata.uid, live):
        return ()
    return _own(ctx, ctx.listers.pods.list(ctx.namespace, base_labels(ctx.tc, kind)))


def read_pods(ctx: ClusterContext, kind: str) -> list[Object]:
    """The pods of a component, read live, by name. Raises ApiError, TransportError."""
    carried = selector_text(base_labels(ctx.tc, kind))
    return _own(ctx, ctx.deps.client.list_page(PODS, ctx.namespace, label_selector=carried).items)


def _own(ctx: ClusterContext, pods: Sequence[Object]) -> list[Object]:
    return sorted((pod for pod in pods if is_own_pod(ctx, pod)), key=lambda pod: pod.metadata.name)


def wanted_pods(ctx: ClusterContext, component: str) -> list[str]:
    """The names of the pods that spec and failover require, by ordinal."""
    return [pod_name(ctx.tc, component, ordinal) for ordinal in desired_ordinals(ctx.tc, component)]


def ready_pods(pods: Sequence[Object]) -> list[Object]:
    """The pods whose Ready condition is True."""
    return [pod for pod in pods if pod.decode_as(Pod).is_ready]


def started_pods(pods: Sequence[Object], container: str) -> set[str]:
    """The names of the pods in which this container has ever started."""
    return {pod.metadata.name for pod in pods if pod.decode_as(Pod).has_started(container)}


def none_has_image(ctx: ClusterContext, kind: str, image: str) -> bool:
    """True if pods of a component use this image, and none of them can pull it."""
    pods = (pod.decode_as(Pod) for pod in pods_of(ctx, kind))
    asking = [pod for pod in pods if any(container.image == image for container in pod.spec.containers)]
    return bool(asking) and all(pod.lacks_image for pod in asking)
