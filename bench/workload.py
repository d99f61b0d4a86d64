"""The content of the caches: pods and clusters with the size of production objects."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from apis.crd import TIDB_CLUSTER, definition
from kube.client import Client
from kube.errors import NotFound, TooManyRequests
from kube.objects import Json
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS, SERVICE_ACCOUNTS, TIDB_CLUSTERS, Resource
from ports.clock import SystemClock
from ports.stopping import Stop

NAMESPACE_COUNT = 10
_CLUSTER_SIZE = 10
"""Pods that share an instance label."""
_WRITERS = 8
_SINCE = "2026-01-01T00:00:00Z"


def namespaces(client: Client) -> None:
    """Create the namespaces, with the ServiceAccount that pods need, because there are no controllers."""
    for number in range(NAMESPACE_COUNT):
        name = _namespace(number)
        client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        client.create(
            SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}, name
        )


def pods(client: Client, count: int) -> None:
    """Create `count` pods of about 9 KB, as the server stores them."""
    _create(client, PODS, pod, count)


def clusters(client: Client, count: int) -> None:
    """Create the CRD, and `count` TidbClusters with the status of running ones."""
    client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(TIDB_CLUSTER))
    clock, stop = SystemClock(), Stop()
    while not _served(client):
        stop.wait(clock, 0.1)
    _create(client, TIDB_CLUSTERS, cluster, count)
    _for_each(count, lambda number: _run_cluster(client, number))


def pod(number: int) -> Json:
    """A TiKV pod that stays unscheduled."""
    instance = f"cluster-{number // _CLUSTER_SIZE}"
    labels = {
        "app.kubernetes.io/component": "tikv",
        "app.kubernetes.io/instance": instance,
        "app.kubernetes.io/managed-by": "tidb-operator",
        "app.kubernetes.io/name": "tidb-cluster",
        "apps.kubernetes.io/pod-index": str(number % _CLUSTER_SIZE),
        "controller-revision-hash": f"{instance}-tikv-7d4b9c6f5",
        "tidb.pingcap.com/cluster-id": "7436109283746501928",
        "tidb.pingcap.com/store-id": str(number),
    }
    spec = {
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 50, "podAffinityTerm": {"labelSelector": {"matchLabels": labels}, "topologyKey": key}}
                    for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
                ]
            }
        },
        "containers": [_container("tikv", instance, 20160, 6), _container("raftlog", instance, 20180, 3)],
        "schedulerName": "nobody",
        "volumes": [{"name": f"volume-{each}", "configMap": {"name": f"{instance}-{each}"}} for each in range(4)],
    }
    metadata = {
        "name": f"{instance}-tikv-{number}",
        "namespace": _namespace(number),
        "labels": labels,
        "annotations": {f"tidb.pingcap.com/annotation-{each}": "value of some length " * 6 for each in range(6)},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "name": f"{instance}-tikv",
                "uid": f"00000000-0000-4000-8000-{number // _CLUSTER_SIZE:012d}",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _container(name: str, instance: str, port: int, variables: int) -> Json:
    return {
        "name": name,
        "image": "registry.example.com/pingcap/tikv:v8.5.2",
        "command": ["/bin/sh", "/usr/local/bin/tikv_start_script.sh"],
        "env": [
            {"name": f"{name.upper()}_VARIABLE_{each}", "value": f"{instance}-{each}"} for each in range(variables)
        ],
        "ports": [{"name": name, "containerPort": port}],
        "resources": {"limits": {"cpu": "16", "memory": "64Gi"}, "requests": {"cpu": "8", "memory": "32Gi"}},
        "volumeMounts": [{"name": f"volume-{each}", "mountPath": f"/var/lib/volume-{each}"} for each in range(4)],
    }


def cluster(number: int) -> Json:
    """A TidbCluster as users write it, with components configured."""
    return {
        "apiVersion": TIDB_CLUSTERS.api_version,
        "kind": TIDB_CLUSTERS.kind,
        "metadata": {
            "name": f"cluster-{number}",
            "namespace": _namespace(number),
            "labels": {"app.kubernetes.io/instance": f"cluster-{number}"},
        },
        "spec": {"version": "v8.5.2"} | _configured("pd") | _configured("tikv") | _configured("tidb"),
    }


def _configured(component: str) -> Json:
    spec = {
        "replicas": 3,
        "requests": {"cpu": "8", "memory": "32Gi", "storage": "100Gi"},
        "limits": {"cpu": "16", "memory": "64Gi"},
        "storageClassName": "standard",
        "nodeSelector": {"dedicated": "tidb"},
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "tidb", "effect": "NoSchedule"}],
        "env": [{"name": f"VARIABLE_{each}", "value": "value"} for each in range(8)],
        "config": "\n".join(f'[section-{each}]\nsetting = "value"' for each in range(10)),
    }
    return {component: spec}


def _run_cluster(client: Client, number: int) -> None:
    name = f"cluster-{number}"
    client.patch(TIDB_CLUSTERS, name, _namespace(number), {"status": _status(name)}, subresource="status")


def _status(name: str) -> Json:
    """The status of three members of each component."""
    conditions = [
        {"type": "Ready", "status": "True", "reason": "Ready", "message": "all components are ready"}
        | {"lastTransitionTime": _SINCE, "lastUpdateTime": _SINCE}
    ]
    pd = {pod: _member(pod) | _of_pd(pod, name) for pod in _pods(name, "pd")}
    tidb = {pod: _member(pod) | {"node": "node-1"} for pod in _pods(name, "tidb")}
    stores = {str(number): _store(number, pod, name) for number, pod in enumerate(_pods(name, "tikv"))}
    return (
        {"clusterID": "7436109283746501928", "conditions": conditions}
        | _observed("pd", name, members=pd)
        | _observed("tikv", name, stores=stores)
        | _observed("tidb", name, members=tidb)
    )


def _observed(component: str, name: str, **known: Json) -> Json:
    revision = f"{name}-{component}-7d4b9c6f5"
    counts = {"replicas": 3, "readyReplicas": 3, "currentReplicas": 3, "updatedReplicas": 3, "observedGeneration": 1}
    revisions = {"currentRevision": revision, "updateRevision": revision, "collisionCount": 0}
    volume = {"name": component, "boundCount": 3, "currentCount": 3, "resizedCount": 3, "currentCapacity": "100Gi"}
    status = {
        "phase": "Normal",
        "image": f"pingcap/{component}:v8.5.2",
        "statefulSet": counts | revisions,
        "volumes": {component: volume},
    }
    return {component: status | known}


def _pods(name: str, component: str) -> list[str]:
    return [f"{name}-{component}-{each}" for each in range(3)]


def _member(pod: str) -> Json:
    return {"name": pod, "health": True, "lastTransitionTime": _SINCE}


def _of_pd(pod: str, name: str) -> Json:
    return {"id": "1428427862495950874", "clientURL": f"http://{pod}.{name}-pd-peer.bench.svc:2379"}


def _store(number: int, pod: str, name: str) -> Json:
    address = f"{pod}.{name}-tikv-peer.bench.svc"
    return {"id": str(number), "podName": pod, "ip": address, "leaderCount": 100, "state": "Up"} | {
        "lastTransitionTime": _SINCE
    }


def _namespace(number: int) -> str:
    return f"bench-{number % NAMESPACE_COUNT}"


def _create(client: Client, resource: Resource, make: Callable[[int], Json], count: int) -> None:
    _for_each(count, lambda number: client.create(resource, make(number), _namespace(number)))


def _for_each(count: int, act: Callable[[int], object]) -> None:
    with ThreadPoolExecutor(_WRITERS) as writers:
        for _ in writers.map(act, range(count)):
            pass


def _served(client: Client) -> bool:
    try:
        client.list_page(TIDB_CLUSTERS)
    except (NotFound, TooManyRequests):
        return False
    return True
