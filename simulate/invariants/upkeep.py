"""Upkeep: deletions of stuck pods, and DDL that stays paused after an upgrade (I38, I39)."""

from collections.abc import Iterator

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS
from simulate.engine.state import State, is_outdated, is_ready, replicas
from simulate.invariants.facts import COMMANDS, DDL_PAUSED, annotations, is_held, is_suspended, records, status_of
from simulate.invariants.operator_write import OperatorWrite


def i38(write: OperatorWrite) -> str | None:
    """A pod is deleted for a rolling update, a command or a failure; otherwise only if it waits for a deleted PVC.

    O5 checks the UID of the pod.
    """
    pod = write.before.get(PODS, write.call.target.name) if write.deletes(PODS) and write.component else None
    if pod is None or _is_to_go(write, pod):
        return None
    name = pod["metadata"]["name"]
    if pod["spec"].get("nodeName"):
        return f"pod {name} runs on {pod['spec']['nodeName']}, and no plan removes it"
    gone = [claim for claim in _claims(pod) if write.before.get(PERSISTENT_VOLUME_CLAIMS, claim) is None]
    if not any(write.read_before(f"{PERSISTENT_VOLUME_CLAIMS} {each}") for each in gone):
        return f"pod {name} is deleted, and no PVC of it is known to be gone"
    return None


def i39(write: OperatorWrite) -> str | None:
    """DDL is paused only after the annotation about it is stored."""
    starts = write.call.method == "POST" and write.call.path.endswith("/upgrade/start")
    if starts and annotations(write.before.cluster).get(DDL_PAUSED) != "true":
        return f"{write.call} before the annotation {DDL_PAUSED} is stored"
    return None


def unannotated_ddl_pause(state: State) -> str | None:
    """I39: while DDL is paused, one of the clusters with this PD has the annotation about it."""
    if not state.ddl_paused or state.cluster is None or any(DDL_PAUSED in annotations(each) for each in state.joined):
        return None
    return f"DDL is paused, and no annotation {DDL_PAUSED} says so"


def lost_password(state: State) -> str | None:
    """6.9: root never has a password that is stored nowhere, and has one if the status says so."""
    held, asked = state.root_password
    if asked and asked != held:
        return "root has a password that the Secret does not hold"
    initialized = status_of(state.cluster, "tidb").get("passwordInitialized")
    return "the status says that root has a password, and it has none" if initialized and not asked else None


def leftover_ddl_pause(state: State) -> Iterator[str]:
    """I39: DDL that is still paused after all servers were upgraded and are healthy."""
    cluster, live = state.cluster, state.stateful_set("tidb")
    if DDL_PAUSED not in annotations(cluster) or live is None or is_held(cluster) or is_suspended(cluster, "tidb"):
        return
    pods, status = state.pods("tidb"), live.get("status") or {}
    observed = status.get("observedGeneration") == live["metadata"].get("generation")
    if not pods or not observed or len(pods) != replicas(live):
        return
    if all(is_ready(pod) and not is_outdated(live, pod) for pod in pods.values()):
        yield f"all TiDB servers are upgraded, and the annotation {DDL_PAUSED} is still there"


def _is_to_go(write: OperatorWrite, pod: Json) -> bool:
    live = write.before.stateful_set(write.component)
    outdated = live is not None and is_outdated(live, pod)
    commanded = any(command in annotations(pod) for command in COMMANDS)
    recorded = any(
        record.get("podName") == pod["metadata"]["name"]
        for record in records(write.before.cluster, write.component).values()
    )
    return outdated or commanded or recorded


def _claims(pod: Json) -> list[str]:
    volumes = pod["spec"].get("volumes") or ()
    return [volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume]
