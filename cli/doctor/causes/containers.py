"""Containers that ended, or that run without being ready: exit codes, last log lines, probes."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

from cli.doctor.facts import Facts, field_of, is_deleted, is_true, pod, pod_model
from cli.doctor.finding import Cause, Sign
from kube.objects import Json, condition_of
from member.observed.pod import ContainerStatus, ContainerTerminated

PATIENCE = timedelta(minutes=5)
"""How long a pod with running containers may be not Ready while data is loaded and leaders move."""

_OUT_OF_MEMORY = "OOMKilled"


def ended(tree: Json) -> Iterator[tuple[ContainerStatus, ContainerTerminated]]:
    """The containers of a pod that end repeatedly, with their last end."""
    model = pod_model(tree)
    for container in (*model.status.init_container_statuses, *model.status.container_statuses):
        last = container.last_state.terminated or container.state.terminated
        waits = container.state.waiting is not None and container.state.waiting.reason == "CrashLoopBackOff"
        loops = waits or (container.restart_count >= 2 and not model.is_ready)
        if last and not is_deleted(tree) and (loops or last.reason == _OUT_OF_MEMORY) and not model.is_ready:
            yield container, last


def _log(facts: Facts, tree: Json, container: str, how: ContainerTerminated) -> str:
    return (facts.logs.get((tree["metadata"]["name"], container), "") or how.message).strip()


def _out_of_memory(facts: Facts) -> Iterator[Sign]:
    for each in facts.pods:
        for container, how in ended(each):
            if how.reason == _OUT_OF_MEMORY:
                yield Sign(
                    pod(each),
                    f"container {container.name} needed more memory than its limit and was killed (exit code 137)",
                    field_of(facts, each, "limits.memory"),
                    _limit(each, container.name),
                )


def _limit(tree: Json, container: str) -> str:
    found = (each.get("resources") or {} for each in tree["spec"]["containers"] if each["name"] == container)
    return next((str((each.get("limits") or {}).get("memory", "")) for each in found), "")


_KNOWN = {
    "DataOfAnotherCluster": r"(?i)cluster[ _]id (?:mismatch|is not match)|mismatch cluster id",
    "ProgramForAnotherArchitecture": r"exec format error",
    "DiskFull": r"(?i)no space left on device",
    "TooFewFiles": r"(?i)too many open files|the maximum number of open file descriptors is too small",
}
"""Patterns of logs of containers that end for a cause of their own."""


def _logged(reason: str) -> Callable[[Facts], Iterator[Sign]]:
    def signs(facts: Facts) -> Iterator[Sign]:
        for each in facts.pods:
            for container, how in ended(each):
                lines = _log(facts, each, container.name, how).splitlines()
                if matching := [line for line in lines if re.search(_KNOWN[reason], line)]:
                    yield Sign(pod(each), f"container {container.name} says: {matching[-1].strip()}")

    return signs


def _crashing(facts: Facts) -> Iterator[Sign]:
    for each in facts.pods:
        for container, how in ended(each):
            log = _log(facts, each, container.name, how)
            if how.reason == _OUT_OF_MEMORY or any(re.search(pattern, log) for pattern in _KNOWN.values()):
                continue
            last = "".join(f"\n  {line}" for line in log.splitlines())
            way = f"{how.reason or 'ended'}, exit code {how.exit_code}, {container.restart_count} restarts"
            yield Sign(pod(each), f"container {container.name} ends again and again ({way}){last}")


def _not_ready(facts: Facts) -> Iterator[Sign]:
    for each in facts.pods:
        model = pod_model(each)
        runs = model.status.container_statuses and all(c.state.running for c in model.status.container_statuses)
        ready = condition_of((each.get("status") or {}).get("conditions") or (), "Ready")
        node = facts.nodes.get(model.spec.node_name, {})
        reachable = not node or is_true(node, "Ready")
        if not runs or model.is_ready or is_deleted(each) or not reachable:
            continue
        if facts.lasts(ready.get("lastTransitionTime"), PATIENCE):
            probes = facts.events(each, "Pod", "Unhealthy")
            why = f": {probes[-1].message.strip()}" if probes else ""
            yield Sign(pod(each), f"runs, and is not Ready for more than {PATIENCE.seconds // 60} minutes{why}")


def _evicted(facts: Facts) -> Iterator[Sign]:
    for each in facts.pods:
        status = each.get("status") or {}
        if status.get("phase") == "Failed" and not is_deleted(each):
            cause = status.get("message") or status.get("reason") or "its containers have ended"
            yield Sign(pod(each), f"failed and is not started again: {cause}")


CAUSES = (
    Cause(
        "OutOfMemory",
        "Raise `limits.memory`; for TiKV, lower `storage.block-cache.capacity`.",
        _out_of_memory,
    ),
    Cause(
        "DataOfAnotherCluster",
        "Keep the volumes of the cluster that you want; see "
        "[PDBootstrapRefused](reasons/failover.md#pdbootstraprefused).",
        _logged("DataOfAnotherCluster"),
    ),
    Cause(
        "ProgramForAnotherArchitecture",
        "Take an image for it, or let pods run on other nodes: `nodeSelector: {kubernetes.io/arch: amd64}`.",
        _logged("ProgramForAnotherArchitecture"),
    ),
    Cause(
        "DiskFull",
        "Raise `requests.storage` (docs/operations.md), or delete what is not needed.",
        _logged("DiskFull"),
    ),
    Cause(
        "TooFewFiles",
        "Raise the limit of the container runtime (`LimitNOFILE`), or lower `rocksdb.max-open-files`.",
        _logged("TooFewFiles"),
    ),
    Cause(
        "CrashLoop",
        "`kubectl logs POD -c CONTAINER --previous`; correct `config`: pods that it broke get the new one.",
        _crashing,
    ),
    Cause(
        "ReadinessProbeFails",
        "`kubectl logs` of the pod; check the port and the path of the probe.",
        _not_ready,
    ),
    Cause(
        "PodFailed",
        "Delete the pod: its StatefulSet recreates it. Look at the node that the message names.",
        _evicted,
    ),
)
