"""The nodes that a pod may run on (scheduler-deployment.md 2.3 to 2.7).

Questions are answered one at a time, so that each answer counts the pods placed by earlier ones.
"""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Protocol

from apis.ordinals import desired_ordinals
from apis.problem import InvalidField
from apis.tidbcluster import TidbCluster
from kube.errors import ApiError
from kube.events import NORMAL, WARNING
from kube.objects import Object
from ports.clock import Clock
from ports.transport import TransportError
from scheduler.cluster_state import Candidate, ClusterState, candidate, claim_of
from scheduler.placement import PD, SPREAD_COMPONENTS, Spread, back_to_previous_node
from scheduler.protocol import Answer, Preemption, Question, Victims
from scheduler.turns import NotItsTurn, Turns, node_of

_TIDB = "tidb"

TOPOLOGY_KEY = "pingcap.com/ha-topology-key"
"""The annotation of a TidbCluster that names the node label of its topology."""
_HOST = "kubernetes.io/hostname"

FAIL = "tidb.pingcap.com/fail-scheduler"
"""The annotation of a pod that must not be scheduled, for fault injection (2.3)."""

_SELECTED_NODE = "volume.kubernetes.io/selected-node"

_HA, _STABLE = "HAScheduling", "StableScheduling"


class Recorder(Protocol):
    """The receiver of events."""

    def event(self, about: Object, type: str, reason: str, message: str) -> None:  # noqa: A002  (Kubernetes' name)
        """Record that `reason` happened to `about`."""


class Unanswerable(Exception):
    """Raised if the cluster cannot be read or must not be served; the message gives the cause."""


class Extender:
    """Answers kube-scheduler. Thread-safe."""

    def __init__(self, state: ClusterState, recorder: Recorder, clock: Clock, *, stable: bool = True) -> None:
        """With `stable`, pods of TiDB return to their previous node (the feature gate StableScheduling)."""
        self._state = state
        self._recorder = recorder
        self._turns = Turns(state, clock)
        self._stable = stable
        self._one_at_a_time = threading.Lock()

    def filter(self, question: Question) -> Answer:
        """The nodes that remain; if there are any, the pod's turn begins. Raises Unanswerable."""
        return self._decide(question, begins=True)

    def preempt(self, preemption: Preemption) -> Mapping[str, Victims]:
        """The nodes on which preemption helps. Raises Unanswerable."""
        victims = preemption.victims
        answer = self._decide(Question(preemption.pod, list(victims)), begins=False)
        return {node: each for node, each in victims.items() if node in answer.kept}

    def _decide(self, question: Question, *, begins: bool) -> Answer:
        if FAIL in question.pod.metadata.annotations:
            raise Unanswerable(f"pod {question.pod.metadata.name} had an intentional failure injected ({FAIL})")
        pod = candidate(question.pod)
        if pod is None:
            return Answer(question.names)
        try:
            with self._one_at_a_time:
                return self._answer(pod, question, begins)
        except (ApiError, TransportError, InvalidField) as error:
            raise Unanswerable(f"cannot schedule {pod.namespace}/{pod.name}: {error}") from error

    def _answer(self, pod: Candidate, question: Question, begins: bool) -> Answer:
        if pod.component in SPREAD_COMPONENTS:
            return self._in_its_turn(pod, question, begins)
        if pod.component == _TIDB and self._stable:
            answer, remark = back_to_previous_node(self._state.tidb_cluster(pod), pod.name, question.names)
            if remark and begins:
                self._recorder.event(pod.pod, NORMAL, _STABLE, remark)
            return answer
        return Answer(question.names)

    def _in_its_turn(self, pod: Candidate, question: Question, begins: bool) -> Answer:
        claims, pods = self._state.claims_and_pods(pod)
        try:
            self._turns.check(pod, claims, pods)
            answer = self._spread(pod, question, claims, pods)
            if begins and answer.kept:
                self._turns.take(pod, claims)
            elif begins:
                self._turns.give_back(pod, claims)
        except NotItsTurn as reason:
            answer = _refused(question.names, str(reason))
        if begins and not answer.kept:
            self._recorder.event(pod.pod, WARNING, _HA, "; ".join(sorted(set(answer.refused.values()))))
        return answer

    def _spread(
        self, pod: Candidate, question: Question, claims: Mapping[str, Object], pods: Mapping[str, Object]
    ) -> Answer:
        if len(question.names) == 1 and _is_bound(claims[pod.claim]):
            return Answer(question.names)  # the volume is on this node only
        tc = self._state.tidb_cluster(pod)
        if tc is None:
            return _refused(question.names, f"TidbCluster {pod.namespace}/{pod.cluster} does not exist")
        key = tc.metadata.annotations.get(TOPOLOGY_KEY, _HOST)
        topologies = {name: self._state.node_labels(name, question.nodes).get(key, "") for name in question.names}
        others = set(pods) - _given_up(tc, pod.component) - {pod.name}
        placed = {
            name: topologies.get(node) or self._state.node_labels(node, question.nodes).get(key, "")
            for name, node in _nodes(pod.component, others, claims, pods).items()
        }
        wanted = {f"{tc.metadata.name}-{pod.component}-{ordinal}" for ordinal in desired_ordinals(tc, pod.component)}
        replicas = len(wanted)
        now = _spread_of(pod.component, max(replicas, len(others) + 1), topologies.values(), placed.values())
        if pod.name not in wanted:
            return _answer_of(now, now, topologies, key)
        in_the_end = [topology for name, topology in placed.items() if name in wanted]
        return _answer_of(_spread_of(pod.component, replicas, topologies.values(), in_the_end), now, topologies, key)


def _spread_of(component: str, replicas: int, candidates: Iterable[str], placed: Iterable[str]) -> Spread:
    """`placed` has the topology of each counted pod, empty if its node has no label."""
    count = Counter(placed)
    counts = {topology: count[topology] for topology in candidates if topology}
    return Spread(component, replicas, counts, len(set(count) - {""}))


def _answer_of(spread: Spread, now: Spread, topologies: Mapping[str, str], key: str) -> Answer:
    """The topologies that `spread` allows, narrowed to the ones that `now` also allows, if any.

    `spread` counts the pods that the spec desires, as v1.6 does; `now` counts all existing pods, e.g. in a
    scale-in that is in progress or was refused, or of a component that was removed from the spec.
    """
    allowed = spread.choose()
    if not allowed:
        return _refused(topologies, spread.refusal())
    chosen = allowed & now.choose() or allowed
    kept = [node for node, topology in topologies.items() if topology in chosen]
    refused = {
        node: _why_not(now if topology in allowed else spread, topology, key)
        for node, topology in topologies.items()
        if topology not in chosen
    }
    return Answer(kept, refused)


def _why_not(spread: Spread, topology: str, key: str) -> str:
    if not topology:
        return f"the node has no label {key}"
    pods = f"{topology} has {spread.counts[topology]} {spread.component} pods"
    return (
        f"{pods}, max pods per topology: {spread.most}"
        if spread.counts[topology] >= spread.most
        else (f"{pods}, and others have fewer")
    )


def _nodes(component: str, names: Set[str], claims: Mapping[str, Object], pods: Mapping[str, Object]) -> dict[str, str]:
    """The node of each counted pod, or the node where its volume is being provisioned."""
    found = {name: node_of(pods[name]) or _promised(claims.get(claim_of(component, name))) for name in sorted(names)}
    return {name: node for name, node in found.items() if node}


def _given_up(tc: TidbCluster, component: str) -> set[str]:
    """Pods that failover has recorded as lost: their places are free."""
    if component == PD:
        return {member.pod_name for member in tc.status.pd.failure_members.values()}
    return {store.pod_name for store in tc.status.tikv.failure_stores.values()}


def _promised(claim: Object | None) -> str:
    """The node on which a pod's volume is being provisioned; empty if unknown."""
    if claim is None or _is_bound(claim):
        return ""
    return claim.metadata.annotations.get(_SELECTED_NODE, "")


def _is_bound(claim: Object) -> bool:
    return bool(claim.decode().get("status", {}).get("phase") == "Bound")


def _refused(names: Sequence[str] | Mapping[str, str], why: str) -> Answer:
    return Answer((), dict.fromkeys(names, why))
