"""The end of an operation on a cluster, read without its operator."""

from collections.abc import Iterable, Mapping

from kube.client import Client
from kube.errors import NotFound
from kube.objects import Json
from kube.resources import PODS, STATEFUL_SETS, TIDB_CLUSTERS
from member.components import workload_names
from sandbox.conditions import condition, holds

Pods = Mapping[str, str]
"""UIDs of pods by name."""


def is_settled(client: Client, name: str, namespace: str = "default") -> bool:
    """True if the cluster is Ready, its StatefulSets match the stored spec, and our operator has nothing left to do.

    v1.6 has no condition Progressing.
    """
    tree = client.get(TIDB_CLUSTERS, name, namespace).decode()
    progress = condition((tree.get("status") or {}).get("conditions"), "Progressing")
    if not holds(tree, "Ready") or (progress or {}).get("reason", "Done") != "Done":
        return False
    components = [component for component in workload_names() if component in tree["spec"]]
    return all(_is_at_rest(client, namespace, f"{name}-{each}", tree["spec"], each) for each in components)


def _is_at_rest(client: Client, namespace: str, name: str, declared: Json, component: str) -> bool:
    try:
        live = client.get(STATEFUL_SETS, name, namespace).decode()
    except NotFound:
        return False
    spec, status = live["spec"], live.get("status") or {}
    return (
        declared[component]["replicas"] == spec["replicas"] == status.get("replicas") == status.get("readyReplicas")
        and status.get("observedGeneration") == live["metadata"]["generation"]
        and status.get("currentRevision") == status.get("updateRevision")
        and any(
            container["image"].endswith(f":{declared['version']}")
            for container in spec["template"]["spec"]["containers"]
        )
    )


def pods(client: Client, components: Iterable[str], namespace: str = "default") -> Pods:
    """The pods of some components."""
    selector = f"app.kubernetes.io/component in ({','.join(components)})"
    return {
        pod.metadata.name: pod.metadata.uid for pod in client.list_page(PODS, namespace, label_selector=selector).items
    }


def are_replaced(before: Pods, after: Pods) -> bool:
    """True if each pod has another UID."""
    return before.keys() == after.keys() and not set(before.values()) & set(after.values())
