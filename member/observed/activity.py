"""What runs in a pod, which decides whether the pod may go while the data plane is silent (docs/rules/silence.md).

A pod that is not Ready may still vote and serve. Only the kubelet of its node knows what runs in it. When a kubelet
cannot reach the API server, the status of its pods shows the past.
"""

from enum import Enum

from kube.objects import Object
from member.context import ClusterContext
from member.observed.nodes import NodeState, node_state
from member.observed.pod import Pod


class Activity(Enum):
    """What the operator knows of a container.

    UNHEARD: the kubelet does not report. RUNNING: the kubelet reports a process, or one that is about to start.
    STOPPED: the kubelet reports that no process runs now. NEVER_STARTED: no process has ever run in this pod.
    """

    UNHEARD = "is not heard of"
    RUNNING = "runs"
    STOPPED = "does not run"
    NEVER_STARTED = "has never started"

    @property
    def is_none(self) -> bool:
        """True if nothing runs: the pod casts no vote and serves no data now."""
        return self in (Activity.STOPPED, Activity.NEVER_STARTED)


def activity(pod: Pod, container: str, node: NodeState | None) -> Activity:
    """The activity of a container; pure.

    `node` is the state of the pod's node: UNKNOWN if the node has no object, None if the operator may not read nodes.
    With None only the conditions of the pod count, which show when the control plane has lost its kubelet.
    """
    if not pod.spec.node_name:
        return Activity.NEVER_STARTED
    if pod.is_marked_unheard or node not in (NodeState.READY, None):
        return Activity.UNHEARD
    if pod.is_running(container):
        return Activity.RUNNING
    return Activity.STOPPED if pod.has_started(container) else Activity.NEVER_STARTED


def cached_activity(ctx: ClusterContext, container: str, pod: Object) -> Activity:
    """The activity of a container according to the caches; `member.evidence.stopped` reads it live."""
    node = None if ctx.listers.nodes is None else node_state(ctx, pod)
    return activity(pod.decode_as(Pod), container, node)
