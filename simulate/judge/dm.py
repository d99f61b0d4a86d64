"""Checks of the operator's actions on DMClusters, by the state of DM's masters and Kubernetes (I1, I9, I10).

| Rule | |
|---|---|
| DM-quorum | no write removes or restarts a master without which the others are no quorum |
| DM-source | a worker is removed only if another one is free to take over its source |
| DM-claim | no claim is deleted whose volume holds the data of a master that the others count |
| DM-ends | in the end the masters know exactly the pods of the spec, or substitutes that serve |
"""

from collections.abc import Iterator

from kube.objects import Json, condition_of
from kube.resources import DM_CLUSTERS, PERSISTENT_VOLUME_CLAIMS, PODS
from member.components import workload_names
from member.context import FailoverSettings
from sandbox.dataplane.dm.book import Book, Worker
from sandbox.world import World
from simulate.engine.calls import Call
from simulate.engine.state import State, pod_of_member
from simulate.invariants.facts import Found
from simulate.invariants.operator_write import OperatorWrite

_MASTER, _WORKER = "dm-master", "dm-worker"
_MEMBERS = "/apis/v1alpha1/members/"


class DMJudge:
    """Checks the DMClusters of one namespace."""

    def __init__(self, world: World, namespace: str) -> None:
        self._world = world
        self._all = State(world, namespace)
        self._states: dict[str, State] = {}

    def before(self, call: Call, failover: FailoverSettings) -> Iterator[Found]:
        """The violations of a write that is about to be sent."""
        for cluster in self._all.all(DM_CLUSTERS):
            state = self._state(cluster["metadata"]["name"])
            write = OperatorWrite(call, state, None, failover)
            yield from self._quorum(write)
            yield from self._source(write)
            yield from _claim(write)

    def end(self) -> Iterator[Found]:
        """The violations at the end."""
        for cluster in self._all.all(DM_CLUSTERS):
            if "deletionTimestamp" in cluster["metadata"]:
                continue
            name, spec = cluster["metadata"]["name"], cluster["spec"]
            state = self._state(name)
            known = (
                {pod_of_member(member) for member in state.members},
                {worker.name for worker in self._workers(state)},
            )
            wanted = (_names(name, _MASTER, spec["master"]), _names(name, _WORKER, spec.get("worker") or {}))
            conditions = (cluster.get("status") or {}).get("conditions") or ()
            reason = condition_of(conditions, "Progressing").get("reason", "")
            if reason == "Done" and known != wanted:
                yield "DM-ends", f"DM knows {sorted(known[0] | known[1])}, not {sorted(wanted[0] | wanted[1])}"
            masters, workers = self._serving(state)
            too_few = len(masters) < len(wanted[0]) or len(workers) < len(wanted[1])
            if reason.endswith("FailedOver") and too_few:
                yield "DM-ends", f"of DM, {sorted(masters | workers)} serve, which are fewer than wanted"

    def _state(self, name: str) -> State:
        if name not in self._states:
            self._states[name] = State(self._world, self._all.namespace, name, workload_names(DM_CLUSTERS.kind))
        self._states[name].look()
        return self._states[name]

    def _serving(self, state: State) -> tuple[set[str], set[str]]:
        masters = {pod_of_member(member) for member in state.members if member.healthy}
        return masters, {worker.name for worker in self._workers(state) if worker.stage != "offline"}

    def _workers(self, state: State) -> list[Worker]:
        return Book(state.pd.etcd, self._world.clock.now()).workers() if state.pd else []

    def _quorum(self, write: OperatorWrite) -> Iterator[Found]:
        removed = _taken_out(write.call, "master")
        leaving = {removed} if removed else _hit(write, _MASTER)
        members = write.before.members
        healthy = {pod_of_member(member) for member in members if member.healthy}
        total = len(members) - bool(removed)
        if total > 1 and leaving & healthy and 2 * len(healthy - leaving) <= total:
            yield "DM-quorum", f"{write.call} leaves {len(healthy - leaving)} of {total} masters"

    def _source(self, write: OperatorWrite) -> Iterator[Found]:
        component, ordinals = write.leaving
        leaving = {write.before.pod_name(_WORKER, ordinal) for ordinal in ordinals} if component == _WORKER else set()
        leaving |= {_taken_out(write.call, "worker")}
        workers = self._workers(write.before)
        free = any(worker.stage == "free" and worker.name not in leaving for worker in workers)
        for worker in workers:
            if worker.name in leaving and worker.stage == "bound" and not free:
                yield "DM-source", f"{write.call} takes {worker.name} away, to which source {worker.source} is bound"


def _claim(write: OperatorWrite) -> Iterator[Found]:
    if write.deletes(PERSISTENT_VOLUME_CLAIMS):
        claim = write.before.get(PERSISTENT_VOLUME_CLAIMS, write.call.target.name)
        if claim is not None and (whose := write.before.holds_live_data(claim)):
            yield "DM-claim", f"{write.call}, which holds the data of {whose}"


def _hit(write: OperatorWrite, component: str) -> set[str]:
    """The pods of a component that a write restarts or removes."""
    found = [write.restarts, write.leaving]
    names = {write.before.pod_name(component, ordinal) for which, hit in found if which == component for ordinal in hit}
    return names & {pod["metadata"]["name"] for pod in write.before.all(PODS)}


def _taken_out(call: Call, kind: str) -> str:
    """The member that DM's masters are asked to remove; empty for any other call."""
    prefix = f"{_MEMBERS}{kind}/"
    return call.path.removeprefix(prefix) if call.method == "DELETE" and call.path.startswith(prefix) else ""


def _names(cluster: str, component: str, spec: Json) -> set[str]:
    return {f"{cluster}-{component}-{ordinal}" for ordinal in range(int(spec.get("replicas", 0)))}
