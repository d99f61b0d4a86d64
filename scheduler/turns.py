"""Turns: a component's pods are scheduled one at a time, as unbound ones are not counted (scheduler-deployment.md 2.5).

The turn is recorded on the claims as in v1.6. The operator, which removes the mark of pods with a node, and a v1.6
scheduler before or after this one understand it. A turn ends when its pod has a node, is gone or is refused, and in any
case a minute after it began. By then a binding has succeeded or failed, and a pod that waits for its volume is counted
where the volume is being provisioned.
"""

from collections.abc import Mapping
from datetime import timedelta

import structlog

from apis.times import parse_time
from kube.errors import Conflict
from kube.objects import Object
from member.labels import POD_SCHEDULING, PVC_DEFER_DELETING
from ports.clock import Clock
from scheduler.cluster_state import Candidate, ClusterState

_log = structlog.get_logger(__name__)

_LONGEST = timedelta(seconds=60)
_TRIES = 4


class NotItsTurn(Exception):
    """Raised if another pod of the component is being scheduled, or that is unknown; the message gives the reason."""


class Turns:
    """Begins and ends turns, for one process. Not thread-safe."""

    def __init__(self, state: ClusterState, clock: Clock) -> None:
        self._state = state
        self._clock = clock

    def check(self, pod: Candidate, claims: Mapping[str, Object], pods: Mapping[str, Object]) -> None:
        """Raise NotItsTurn, and as ClusterState does."""
        if pod.claim not in claims:
            raise NotItsTurn(f"waiting for PersistentVolumeClaim {pod.namespace}/{pod.claim}")
        for claim in _marked(claims):
            if claim.metadata.name != pod.claim and self._is_under_way(pod, claim, pods):
                raise NotItsTurn(f"waiting for Pod {pod.namespace}/{_pod_of(pod, claim)} scheduling")

    def take(self, pod: Candidate, claims: Mapping[str, Object]) -> None:
        """Mark only the pod's claim. Raises NotItsTurn, and as ClusterState does."""
        for claim in _marked(claims):
            if claim.metadata.name != pod.claim:
                self._mark(pod, claim, None)
        own = claims[pod.claim]
        if not own.metadata.annotations.get(POD_SCHEDULING) or self._is_over(own):
            self._mark(pod, own, self._clock.wall().isoformat(timespec="seconds").replace("+00:00", "Z"))

    def give_back(self, pod: Candidate, claims: Mapping[str, Object]) -> None:
        """End the turn of a refused pod. Raises NotItsTurn, and as ClusterState does."""
        own = claims.get(pod.claim)
        if own is not None and own.metadata.annotations.get(POD_SCHEDULING):
            self._mark(pod, own, None)

    def _is_under_way(self, pod: Candidate, claim: Object, pods: Mapping[str, Object]) -> bool:
        if PVC_DEFER_DELETING in claim.metadata.annotations or self._is_over(claim):
            return False
        name = _pod_of(pod, claim)
        # a list is not atomic: a pod missing from it is read once more
        holder = pods.get(name) or self._state.pod(pod.namespace, name)
        return holder is not None and not node_of(holder)

    def _is_over(self, claim: Object) -> bool:
        began = parse_time(claim.metadata.annotations[POD_SCHEDULING])
        return began is None or not timedelta() <= self._clock.wall() - began <= _LONGEST

    def _mark(self, pod: Candidate, claim: Object, since: str | None) -> None:
        """Raises NotItsTurn if the claim keeps changing."""
        for _ in range(_TRIES):
            try:
                self._state.annotate_claim(claim, {POD_SCHEDULING: since})
            except Conflict:
                found = self._state.claim(pod.namespace, claim.metadata.name)
                if found is None:
                    break
                claim = found
            else:
                _log.debug("turn", claim=claim.key, since=since)
                return
        raise NotItsTurn(f"PersistentVolumeClaim {claim.key} changes all the time, or is gone; trying again")


def node_of(pod: Object) -> str:
    """The node of a pod; empty if it has none yet."""
    node: str = pod.decode().get("spec", {}).get("nodeName", "")
    return node


def _marked(claims: Mapping[str, Object]) -> list[Object]:
    return [claim for claim in claims.values() if claim.metadata.annotations.get(POD_SCHEDULING)]


def _pod_of(pod: Candidate, claim: Object) -> str:
    return claim.metadata.name.removeprefix(f"{pod.component}-")
