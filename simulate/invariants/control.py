"""Control: times without writes, preconditions of destruction, truth of the status (I26-I28, I30, I36, O4, O5, O8)."""

from collections.abc import Iterator

from apis.components import component_type
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField
from apis.tidbcluster import TidbCluster
from apis.validation import validate
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from member.labels import EVICT_LEADER_BEGIN_TIME, TIKV_EVICT_LEADER_END_AT
from simulate.engine.calls import Port
from simulate.engine.components import managed_components, says_synced
from simulate.engine.state import State, is_outdated, pod_of, pod_of_member, replicas
from simulate.invariants.facts import asked_for, conditions, is_held, is_rolled_by_hand, says_ready, spec_of, status_of
from simulate.invariants.operator_write import OperatorWrite

_LABELLING_ANNOTATIONS = frozenset(
    {
        "tidb.pingcap.com/pod-name",
        "tidb.pingcap.com/tikv-no-active-store-since",
        "tidb.pingcap.com/volume-replacement-begun",
    }
)
_EVICTION_NOTES = frozenset({EVICT_LEADER_BEGIN_TIME, TIKV_EVICT_LEADER_END_AT})


def i26(write: OperatorWrite) -> str | None:
    """While the cluster is paused, only labels with ids are written (3.2), and nothing in PD."""
    if ((write.seen or {}).get("spec") or {}).get("paused") and not _only_reports(write) and not _is_labelling(write):
        return f"{write.call} though the cluster is paused"
    return None


def i27(write: OperatorWrite) -> str | None:
    """While the cluster is being deleted nothing is written."""
    if ((write.seen or {}).get("metadata") or {}).get("deletionTimestamp"):
        return f"{write.call} though the cluster is being deleted"
    return None


def i28(write: OperatorWrite) -> str | None:
    """While the spec is invalid, only the writes for a paused cluster are allowed.

    Missing objects are recreated, foreign changes corrected, and serving TiKV pods get their leaders back.
    """
    if f"{write.call.target.resource}/{write.call.target.name}" in write.others:
        return None
    if write.seen is None or _only_reports(write) or _is_labelling(write) or write.call.method == "POST":
        return None
    if _gives_leaders_back(write):
        return None
    try:
        problems = [str(problem) for problem in validate(with_defaults(decode(write.seen, TidbCluster)))]
    except InvalidField as error:
        problems = [str(error.problem)]
    return f"{write.call} though the spec is invalid: {problems[0]}" if problems else None


def i30(write: OperatorWrite) -> str | None:
    """The user's spec is never written."""
    if write.creates(TIDB_CLUSTERS) or write.deletes(TIDB_CLUSTERS):
        return f"{write.call}: only users create and delete clusters"
    if write.patches(TIDB_CLUSTERS) and "spec" in write.body:
        return f"{write.call} writes the spec: {write.body['spec']}"
    return None


def i36(write: OperatorWrite) -> str | None:
    """Ready=True is never written by a reconcile that sees fewer pods or members than the spec requires.

    For an invalid spec the conditions report that it is not followed.
    """
    status = write.status_after
    invalid = conditions(status).get("Progressing", {}).get("reason") == "InvalidSpec"
    if not write.status or not says_ready(status) or invalid:
        return None
    for component in managed_components():
        wanted, seen = asked_for(write.seen, component), status_of({"status": status}, component)
        counts = seen.get("statefulSet") or {}
        there, healthy = counts.get("replicas", 0), _serving(seen, component)
        if min(there, healthy) < wanted:
            return f"Ready=True though {component} has {there} pods of {wanted}, of which {healthy} are healthy"
    return None


def unfounded_ready(state: State) -> str | None:
    """I36: a status with Ready=True reports every component as observed and complete."""
    status = (state.cluster or {}).get("status") or {}
    if not says_ready(status):
        return None
    present = _present(state)
    for component in present:
        seen = status_of(state.cluster, component)
        revisions = seen.get("statefulSet") or {}
        if says_synced(component) and not seen.get("synced"):
            return f"Ready=True though {component} could not be observed"
        by_hand = is_rolled_by_hand(state.cluster, component)
        if revisions.get("currentRevision") != revisions.get("updateRevision") and not by_hand:
            return f"Ready=True though {component} is in the middle of a roll"
    ill = [
        member["name"]
        for member in ((status.get("pd") or {}).get("members") or {}).values()
        if not member.get("health")
    ]
    stores = (((status.get(each) or {}).get("stores") or {}) for each in present)
    ill += [store["podName"] for found in stores for store in found.values() if store.get("state") != "Up"]
    return f"Ready=True though {', '.join(ill)} is not well" if ill else None


def _present(state: State) -> list[str]:
    """The components in the spec, and those that run without it."""
    cluster, sets = state.cluster, state.stateful_sets
    return [each for each in managed_components() if spec_of(cluster, each) or (each in sets and replicas(sets[each]))]


def outdated_ready(state: State) -> Iterator[str]:
    """I36: Ready=True of a cluster that is not Ready; the operator needs a reconcile to notice."""
    if state.cluster is None or not says_ready(state.cluster.get("status") or {}) or is_held(state.cluster):
        return
    for component in _present(state):
        live = state.stateful_set(component)
        outdated = [pod for pod in state.pods(component).values() if live is None or is_outdated(live, pod)]
        if live is None or outdated:
            yield f"Ready=True though {len(outdated)} pods of {component} are outdated"
    ill = [pod_of_member(member) for member in state.members if not member.healthy]
    ill += [pod_of(store) for store in state.stores if state.store_state(store) != "Up"]
    # this cluster does not report the members of joined clusters
    ill = [each for each in ill if each.startswith(f"{state.name}-")]
    if ill:
        yield f"Ready=True though {', '.join(ill)} is not well"


def o8(state: State) -> str | None:
    """A cluster that is not Ready reports what it waits for, as a reason and a sentence."""
    said = conditions((state.cluster or {}).get("status") or {})
    if not said or said.get("Ready", {}).get("status") == "True":
        return None
    progress = said.get("Progressing", {})
    if progress.get("reason") in (None, "", "Done") or not progress.get("message"):
        return f"Ready={said.get('Ready', {}).get('status')}, and no condition says what for: {progress}"
    return None


def o4(write: OperatorWrite) -> str | None:
    """TLS is never silently disabled: pods of a cluster with TLS have its certificates."""
    tls = ((write.seen or {}).get("spec") or {}).get("tlsCluster") or {}
    if (
        not tls.get("enabled")
        or not write.component
        or not (write.creates(STATEFUL_SETS) or write.patches(STATEFUL_SETS))
    ):
        return None
    template = (write.body.get("spec") or {}).get("template") or {}
    if "volumes" not in (template.get("spec") or {}) or _has_certificates(template, write.component):
        return None
    running = write.before.pods(write.component).values()
    if write.creates(STATEFUL_SETS) and running and not any(_has_certificates(pod, write.component) for pod in running):
        # it reverts the running pods; their wait for certificates is reported
        return None
    return f"{write.call} gives {write.component} no certificates though spec.tlsCluster is enabled"


def _has_certificates(pod: Json, component: str) -> bool:
    """True if a pod or template mounts its component's certificates; TiProxy may use the cluster's as a client."""
    suffixes = ("-cluster-secret", "-cluster-client-secret") if component == "tiproxy" else ("-cluster-secret",)
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    names = ((volume.get("secret") or {}).get("secretName", "") for volume in volumes)
    return any(name.endswith(suffixes) for name in names)


def o5(write: OperatorWrite) -> str | None:
    """A destructive write was preceded by a live read in the same reconcile, and carries a precondition."""
    call = write.call
    if call.port is Port.KUBERNETES and call.method == "DELETE":
        given = write.body.get("preconditions") or {}
        if not given.get("uid") or not given.get("resourceVersion"):
            return f"{call} without preconditions"
        if not write.read_before(str(call.target)):
            return f"{call} without a live read of it in the same reconcile"
    if (write.removed_member or write.removed_store) and not any(
        each.port is Port.DATA_PLANE and not each.is_write for each in write.earlier
    ):
        return f"{call} without a live read of PD in the same reconcile"
    shrinks = write.live is not None and write.replicas[1] < write.replicas[0]
    lowers = write.live is not None and write.partition[1] < write.partition[0]
    if (shrinks or lowers) and not (write.body.get("metadata") or {}).get("resourceVersion"):
        return f"{call} without a resourceVersion"
    return None


def _only_reports(write: OperatorWrite) -> bool:
    """True for status and events, which only report."""
    return write.patches(TIDB_CLUSTERS) or write.call.target.resource == "events" or not write.call.counts


def _is_labelling(write: OperatorWrite) -> bool:
    """True for labels and annotations that identify pods and their volumes."""
    if not any(map(write.patches, (PODS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES))) or set(write.body) != {
        "metadata"
    }:
        return False
    sent = write.body["metadata"]
    known = _LABELLING_ANNOTATIONS.issuperset(sent.get("annotations") or ())
    return known and {"uid", "resourceVersion", "labels", "annotations"}.issuperset(sent)


def _gives_leaders_back(write: OperatorWrite) -> bool:
    """True for the end of an eviction of an Up store, or of its record at the pod."""
    if write.ended_eviction:
        return any(
            store.id == write.ended_eviction and write.before.store_state(store) == "Up"
            for store in write.before.stores
        )
    if not write.patches(PODS) or set(write.body) != {"metadata"}:
        return False
    notes = write.body["metadata"].get("annotations") or {}
    return notes.keys() <= _EVICTION_NOTES and notes.get(EVICT_LEADER_BEGIN_TIME) is None


def _serving(seen: Json, component: str) -> int:
    """The number of healthy members or Up stores in a status."""
    if component_type(component).is_store:
        return sum(store.get("state") == "Up" for store in (seen.get("stores") or {}).values())
    if component.startswith("tici-"):
        # only Kubernetes reports on them
        return int((seen.get("statefulSet") or {}).get("readyReplicas", 0))
    members = seen.get("members") or seen.get("captures") or {}
    listed = members if isinstance(members, list) else members.values()
    # members of a microservice are only listed; others have a state
    return sum(isinstance(each, str) or _is_well(each) for each in listed)


def _is_well(member: Json) -> bool:
    return bool(member.get("health") or member.get("ready")) or member.get("state") == "online"
