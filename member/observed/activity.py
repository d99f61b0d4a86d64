"""Whether anything of a pod runs: what may go while the data plane is silent, and what may not (docs/rules/silence.md).

A pod that is not Ready may vote and serve all the same. Only the kubelet of its node knows what runs in it, and a
kubelet that reaches no API server reports nothing: from then on the status of its pods is a memory.
"""

from enum import Enum

from kube.objects import Object
from member.context import ClusterContext
from member.observed.nodes import NodeState, node_state
from member.observed.pod import Pod


class Activity(Enum):
    """What is known of a container of a pod.

    UNHEARD: the kubelet does not report. RUNNING: it reports a process, or that the pod is about to have one.
    STOPPED: it reports that none runs at this moment; NEVER_STARTED: nor ever has in this pod.
    """

    UNHEARD = "is not heard of"
    RUNNING = "runs"
    STOPPED = "does not run"
    NEVER_STARTED = "has never started"

    @property
    def is_none(self) -> bool:
        """Whether nothing runs, so that the pod casts no vote and serves no data at this moment."""
        return self in (Activity.STOPPED, Activity.NEVER_STARTED)


def activity(pod: Pod, container: str, node: NodeState | None) -> Activity:
    """What runs in a container; pure.

    `node` is the node of the pod: UNKNOWN where it has no object, None where the operator may read none. Then the pod
    alone decides, whose conditions show that the control plane no longer hears of its kubelet.
    """
    if not pod.spec.node_name:
        return Activity.NEVER_STARTED
    if pod.is_marked_unheard or node not in (NodeState.READY, None):
        return Activity.UNHEARD
    if pod.is_running(container):
        return Activity.RUNNING
    return Activity.STOPPED if pod.has_started(container) else Activity.NEVER_STARTED


def cached_activity(ctx: ClusterContext, container: str, pod: Object) -> Activity:
    """What runs in a container as the caches have it; `member.evidence.stopped` reads it live."""
    node = None if ctx.listers.nodes is None else node_state(ctx, pod)
    return activity(pod.decode_as(Pod), container, node)
