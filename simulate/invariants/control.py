"""Control: when nothing is written, what destruction needs, what a status may say (I26-I28, I30, I36, O4, O5, O8)."""

from collections.abc import Iterator

from apis.components import component_type
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.problem import InvalidField
from apis.tidbcluster import TidbCluster
from apis.validation import validate
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STATEFUL_SETS, TIDB_CLUSTERS
from simulate.acts import Act
from simulate.calls import Port
from simulate.components import managed_components
from simulate.invariants.facts import asked_for, conditions, is_held, says_ready
from simulate.state import State, is_outdated, pod_of

_TOLD_BY_LABELLING = frozenset(
    {
        "tidb.pingcap.com/pod-name",
        "tidb.pingcap.com/tikv-no-active-store-since",
        "tidb.pingcap.com/volume-replacement-begun",
    }
)


def i26(act: Act) -> str | None:
    """While the cluster is paused nothing of it is written but labels that tell ids (3.2), and nothing of PD."""
    if ((act.seen or {}).get("spec") or {}).get("paused") and not _is_talk(act) and not _is_labelling(act):
        return f"{act.call} though the cluster is paused"
    return None


def i27(act: Act) -> str | None:
    """While the cluster is being deleted nothing is written."""
    if ((act.seen or {}).get("metadata") or {}).get("deletionTimestamp"):
        return f"{act.call} though the cluster is being deleted"
    return None


def i28(act: Act) -> str | None:
    """While the spec is invalid nothing but the status is written."""
    if act.seen is None or _is_talk(act):
        return None
    try:
        problems = [str(each) for each in validate(with_defaults(decode(act.seen, TidbCluster)))]
    except InvalidField as error:
        problems = [str(error.problem)]
    return f"{act.call} though the spec is invalid: {problems[0]}" if problems else None


def i30(act: Act) -> str | None:
    """The user's spec is never written."""
    if act.creates(TIDB_CLUSTERS) or act.deletes(TIDB_CLUSTERS):
        return f"{act.call}: only users create and delete clusters"
    if act.patches(TIDB_CLUSTERS) and "spec" in act.body:
        return f"{act.call} writes the spec: {act.body['spec']}"
    return None


def i36(act: Act) -> str | None:
    """Nobody says Ready=True who sees fewer pods or members of a component than the spec asks for.

    Of a spec that is not valid, the conditions tell that it is not followed.
    """
    status = act.status_after
    invalid = conditions(status).get("Progressing", {}).get("reason") == "InvalidSpec"
    if not act.status or not says_ready(status) or invalid:
        return None
    for part in managed_components():
        wanted, seen = asked_for(act.seen, part), status.get(part) or {}
        counts = seen.get("statefulSet") or {}
        there, healthy = counts.get("replicas", 0), _serving(seen, part)
        if min(there, healthy) < wanted:
            return f"Ready=True though {part} has {there} pods of {wanted}, of which {healthy} are healthy"
    return None


def honest(state: State) -> str | None:
    """I36: a status that says Ready=True says that every component was observed and is as it should be."""
    status = (state.cluster or {}).get("status") or {}
    if not says_ready(status):
        return None
    for part in managed_components():
        seen = status.get(part) or {}
        revisions = seen.get("statefulSet") or {}
        if part != "tidb" and not seen.get("synced"):
            return f"Ready=True though {part} could not be observed"
        if revisions.get("currentRevision") != revisions.get("updateRevision"):
            return f"Ready=True though {part} is in the middle of a roll"
    ill = [each["name"] for each in ((status.get("pd") or {}).get("members") or {}).values() if not each.get("health")]
    ill += [s["podName"] for s in ((status.get("tikv") or {}).get("stores") or {}).values() if s.get("state") != "Up"]
    return f"Ready=True though {', '.join(ill)} is not well" if ill else None


def boasted(state: State) -> Iterator[str]:
    """I36: Ready=True of a cluster that is not; the operator needs a reconcile to see it."""
    if state.cluster is None or not says_ready(state.cluster.get("status") or {}) or is_held(state.cluster):
        return
    for part in managed_components():
        live = state.stateful_set(part)
        outdated = [pod for pod in state.pods(part).values() if live is None or is_outdated(live, pod)]
        if live is None or outdated:
            yield f"Ready=True though {len(outdated)} pods of {part} are outdated"
    ill = [each.name for each in state.members if not each.healthy]
    ill += [pod_of(each) for each in state.stores if state.store_state(each) != "Up"]
    if ill:
        yield f"Ready=True though {', '.join(ill)} is not well"


def o8(state: State) -> str | None:
    """A cluster that is not Ready says what is being waited for, in a reason and a sentence."""
    said = conditions((state.cluster or {}).get("status") or {})
    if not said or said.get("Ready", {}).get("status") == "True":
        return None
    progress = said.get("Progressing", {})
    if progress.get("reason") in (None, "", "Done") or not progress.get("message"):
        return f"Ready={said.get('Ready', {}).get('status')}, and nobody says what is waited for: {progress}"
    return None


def o4(act: Act) -> str | None:
    """TLS is never silently off: pods of a cluster with TLS have its certificates."""
    tls = ((act.seen or {}).get("spec") or {}).get("tlsCluster") or {}
    if not tls.get("enabled") or not act.part or not (act.creates(STATEFUL_SETS) or act.patches(STATEFUL_SETS)):
        return None
    pods = ((act.body.get("spec") or {}).get("template") or {}).get("spec") or {}
    secrets = [(each.get("secret") or {}).get("secretName", "") for each in pods.get("volumes") or ()]
    if "volumes" not in pods or any(each.endswith("-cluster-secret") for each in secrets):
        return None
    return f"{act.call} gives {act.part} no certificates though spec.tlsCluster is enabled"


def o5(act: Act) -> str | None:
    """What destroys was preceded by a live read in the same reconcile and carries a precondition."""
    call = act.call
    if call.port is Port.KUBERNETES and call.method == "DELETE":
        given = act.body.get("preconditions") or {}
        if not given.get("uid") or not given.get("resourceVersion"):
            return f"{call} without preconditions"
        if not act.read_before(str(call.target)):
            return f"{call} without a live read of it in the same reconcile"
    if (act.removed_member or act.removed_store) and not any(
        each.port is Port.DATA_PLANE and not each.is_write for each in act.earlier
    ):
        return f"{call} without a live read of PD in the same reconcile"
    shrinks = act.live is not None and act.replicas[1] < act.replicas[0]
    lowers = act.live is not None and act.partition[1] < act.partition[0]
    if (shrinks or lowers) and not (act.body.get("metadata") or {}).get("resourceVersion"):
        return f"{call} without a resourceVersion"
    return None


def _is_talk(act: Act) -> bool:
    """Status, events and labels: what only says something."""
    return act.patches(TIDB_CLUSTERS) or act.call.target.resource == "events" or not act.call.counts


def _is_labelling(act: Act) -> bool:
    """What tells of a pod, of its volumes too, whose it is."""
    if not any(map(act.patches, (PODS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES))) or set(act.body) != {"metadata"}:
        return False
    sent = act.body["metadata"]
    known = _TOLD_BY_LABELLING.issuperset(sent.get("annotations") or ())
    return known and {"uid", "resourceVersion", "labels", "annotations"}.issuperset(sent)


def _serving(seen: Json, part: str) -> int:
    """The healthy members, or the stores that are Up, of which a status tells."""
    if component_type(part).is_store:
        return sum(each.get("state") == "Up" for each in (seen.get("stores") or {}).values())
    return sum(bool(each.get("health")) for each in (seen.get("members") or {}).values())
