"""The twin of a running cluster: a world with the same nodes, pods, volumes, PD members and stores.

Objects keep their names and UIDs. The containers start again, on volumes that hold the membership of their servers,
before the operator enters: what only their processes knew is gone. The operator must then have nothing to do; what it
would write instead shows what the twin lacks.
"""

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from apis.accessor import COMPONENT_LABEL
from apis.cluster import Cluster
from apis.cluster_kinds import CLUSTER_MODELS
from apis.components import component_names
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.tidbcluster import TidbCluster, TidbClusterStatus
from controller_manager.observing import PlannedWrites
from dataplane.read_only import ReadOnlyTransport
from kube.dry_run import DryRunTransport, PlannedWrite
from kube.objects import Json, condition_of
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    DEPLOYMENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
    STORAGE_CLASSES,
    Resource,
)
from member.context import Settings
from member.naming import member_name
from ports import quantity
from rehearsal.databases import Databases, Volumes
from rehearsal.durations import delays, own_starts, typical
from rehearsal.forecast import Step
from rehearsal.operator import SETTINGS
from rehearsal.recording import WORKLOADS, Recording, sources
from rehearsal.stage import CannotRehearse, Stage
from sandbox.controllers.revisions import HASH_LABEL, revision_of, template_hash, template_of
from sandbox.controllers.stateful_set import new_pod
from sandbox.controllers.stateful_set_plan import Snapshot
from sandbox.controllers.volumes import standard_storage_class
from sandbox.kubelet.nodes import NodeSpec
from sandbox.kubelet.stored_images import MOST_LISTED
from sandbox.placement import requested
from sandbox.timings import Timings

_SEED = 43
"""Other worlds have other seeds: otherwise new objects of the twin might have the UIDs of a recorded sandbox."""
_STARTS_WITHIN = 15 * 60.0
_SETTLES = 90.0
"""The seconds in which PD learns of all stores and regions again."""
_OBSERVED = 35.0
"""The seconds for which an operator observes the twin: one resync."""
_FORGOTTEN = (":10080/labels", ":3080/api/admin/config/")
"""Calls with what a server forgets when it restarts."""
_PLAIN = "Opaque"


@dataclass(frozen=True, slots=True)
class Twin:
    """A world that continues a recording, and its clusters.

    `missing` names what could not be carried over. `wanted` is what the operator would write although nothing has
    changed: `verb resource name`, or the call of a server; it is not asked for in the middle of a change. `starts` are
    the seconds that servers take to start, for components that take longer than typical ones. `starting` are the steps
    of pods that were not Ready, and have started in the twin.
    """

    stage: Stage
    settings: Settings
    clusters: Sequence[Json]
    nodes: int
    missing: Sequence[str]
    wanted: Sequence[str]
    starts: Mapping[str, float]
    starting: Sequence[Step] = ()


def twin_of(
    recording: Recording,
    secrets: Sequence[Json],
    began: datetime,
    timings: Timings,
    pace: float = 0.0,
    *,
    changing: bool = False,
) -> Twin:
    """Build the twin, and check it. `secrets` are issued for clusters with TLS, whose own keys are not read.

    For `pace` see `Stage`. The twin of a cluster that is `changing` continues the change.

    Raises CannotRehearse if the cluster is not whole, or its servers do not start in the twin.
    """
    clusters = [with_defaults(decode(cluster, CLUSTER_MODELS[cluster["kind"]])) for cluster in recording.clusters]
    _check_completeness(recording, clusters)
    if not changing:
        _check_rest(recording, clusters)
    running = [pod for pod in (*recording.all(PODS), *recording.neighbours) if _runs(pod)]
    missing, recording = list(_missing_pods(recording)), _of_ready_pods(recording)
    nodes = _nodes(recording)
    specs = [_machine(node, recording) for node in nodes if _serves(node)]
    advanced = bool(recording.all(ADVANCED_STATEFUL_SETS))
    stage = Stage(specs, began, timings, _SEED, advanced=advanced, pace=pace)
    try:
        _furnish(stage, recording, nodes, secrets)
        stage.world.kubelet.store_images(running)
        labels = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in nodes}
        Databases(_volumes(stage, recording, [*recording.all(PODS), *missing]), labels, stage.clock, timings).resume(
            clusters
        )
        _start(stage, recording)
        starts = own_starts(recording.all(PODS), recording.clusters, recording.all(PERSISTENT_VOLUME_CLAIMS))
        stage.world.kubelet.delays.update(later := delays(starts, timings))
        settings = replace(
            SETTINGS, rechecks=False, discovery_image=_discovery_image(recording), advanced_stateful_sets=advanced
        )
        wanted = [] if changing else _wanted(stage, settings)
    except BaseException:
        stage.world.stop()
        raise
    unread = {name.partition(".")[0] for name in _unread(recording)}
    return Twin(
        stage=stage,
        settings=settings,
        clusters=recording.clusters,
        nodes=len(specs),
        missing=list(_missing(recording)),
        wanted=[each for each in wanted if each.split()[1] not in unread],
        starts=(slow := {each: starts[each] for each in later}),
        starting=list(_starting(missing, typical(timings) | slow)),
    )


# The recorded cluster


def _check_completeness(recording: Recording, clusters: Sequence[Cluster]) -> None:
    """Raise CannotRehearse if the recording lacks members or pods of the cluster."""
    own = {member for cluster in clusters if isinstance(cluster, TidbCluster) for member in _members(cluster.status)}
    for cluster in clusters:
        name = f"{cluster.kind} {cluster.metadata.namespace}/{cluster.metadata.name}"
        if elsewhere := sorted(_peers(cluster) - own):
            raise CannotRehearse(f"{name} shares its PD with {elsewhere[0]}, of which no TidbCluster was found")
        if any(_is_in_advanced(pod, cluster) for pod in recording.neighbours):
            why = recording.unread.get(str(ADVANCED_STATEFUL_SETS), "they are gone")
            raise CannotRehearse(f"{name} is in Advanced StatefulSets, which could not be read: {why}")


def _check_rest(recording: Recording, clusters: Sequence[Cluster]) -> None:
    """Raise CannotRehearse unless the cluster is at rest: another change would mix with the one under way."""
    for tree, cluster in zip(recording.clusters, clusters, strict=True):
        name = f"{cluster.kind} {cluster.metadata.namespace}/{cluster.metadata.name}"
        conditions = (tree.get("status") or {}).get("conditions") or ()
        progressing = condition_of(conditions, "Progressing")
        if progressing.get("status") == "True":
            way_out = "wait until it is done, or plan without a change to see what is left"
            raise CannotRehearse(f"{name} is changing; {way_out}: {progressing.get('message', '')}")
        if condition_of(conditions, "Ready").get("status") != "True":
            why = condition_of(conditions, "Ready").get("message") or "it has no status yet"
            raise CannotRehearse(f"{name} is not Ready; `kubectl tidb doctor` says why: {why}")
    for pod in recording.all(PODS):
        if not _is_ready(pod):
            meta = pod["metadata"]
            raise CannotRehearse(f"pod {meta['namespace']}/{meta['name']} is not Ready; wait until it is")


def _of_ready_pods(recording: Recording) -> Recording:
    """A recording without the pods that are not Ready: the StatefulSets of the twin create them again."""
    ready = [pod for pod in recording.all(PODS) if _is_ready(pod)]
    return replace(recording, objects={**recording.objects, PODS: ready})


def _missing_pods(recording: Recording) -> Iterator[Json]:
    """The pods that StatefulSets need and that are not Ready, also those between a deletion and a creation."""
    pods = {(pod["metadata"]["namespace"], pod["metadata"]["name"]): pod for pod in recording.all(PODS)}
    for stateful_set in (tree for resource in WORKLOADS for tree in recording.all(resource)):
        namespace, name = stateful_set["metadata"]["namespace"], stateful_set["metadata"]["name"]
        for ordinal in Snapshot(stateful_set, pods={}, current="", updated="", now=0.0).ordinals:
            pod = pods.get((namespace, f"{name}-{ordinal}"))
            if pod is None:
                yield new_pod(stateful_set, ordinal, revision_of(stateful_set, 1))
            elif not _is_ready(pod):
                yield pod


def _starting(missing: Iterable[Json], seconds: Mapping[str, float]) -> Iterator[Step]:
    """Steps of the missing pods, each as long as a server of its component takes to start."""
    for pod in missing:
        component = (pod["metadata"].get("labels") or {}).get(COMPONENT_LABEL, "")
        if component in seconds:
            yield Step(pod["metadata"]["name"], component, "starts", 0.0, seconds[component])


def _is_in_advanced(pod: Json, cluster: Cluster) -> bool:
    """True if an Advanced StatefulSet of the cluster controls the pod."""
    meta, sets = pod["metadata"], {member_name(cluster, name) for name in component_names(of=cluster.kind)}
    owners = meta.get("ownerReferences") or () if meta["namespace"] == cluster.metadata.namespace else ()
    return any(
        (owner["apiVersion"], owner["name"] in sets) == (ADVANCED_STATEFUL_SETS.api_version, True) for owner in owners
    )


def _members(status: TidbClusterStatus) -> Iterator[str]:
    """The names of a cluster's own members, and the addresses of its stores."""
    yield from (member.name for member in status.pd.members.values())
    yield from (store.ip for of in (status.tikv, status.tiflash) for store in of.stores.values())


def _peers(cluster: Cluster) -> set[str]:
    """The same of other clusters on its PD."""
    if not isinstance(cluster, TidbCluster):
        return set()
    status = cluster.status
    stores = {store.ip for of in (status.tikv, status.tiflash) for store in of.peer_stores.values()}
    return stores | {member.name for member in status.pd.peer_members.values()}


def _is_ready(pod: Json) -> bool:
    ready = condition_of((pod.get("status") or {}).get("conditions") or (), "Ready").get("status") == "True"
    return ready and not pod["metadata"].get("deletionTimestamp")


def _runs(pod: Json) -> bool:
    """True if a pod runs, so that all of its images are on its node."""
    return (pod.get("status") or {}).get("phase") == "Running"


def _discovery_image(recording: Recording) -> str:
    """The image of Discovery, which the operator's flags name."""
    images = (each["spec"]["template"]["spec"]["containers"][0]["image"] for each in recording.all(DEPLOYMENTS))
    return next(images, SETTINGS.discovery_image)


def _unread(recording: Recording) -> Mapping[str, str]:
    """The errors by resource, without Advanced StatefulSets: a cluster that is in them has no twin without them."""
    return {what: why for what, why in recording.unread.items() if what != str(ADVANCED_STATEFUL_SETS)}


def _missing(recording: Recording) -> Iterator[str]:
    for what, why in _unread(recording).items():
        yield f"{what} ({why})"
    for node in recording.all(NODES):
        if not _serves(node):
            yield f"node {node['metadata']['name']}, which is not Ready"
    full = sum(_lists_only_some(node) for node in recording.all(NODES))
    if full:
        yield f"images beyond the {MOST_LISTED} that a Node lists, on {full} of the nodes; pods may start sooner there"


def _lists_only_some(node: Json) -> bool:
    """True if a node may have more images than it lists. Those are smaller, which images of databases seldom are."""
    return len((node.get("status") or {}).get("images") or ()) == MOST_LISTED


# The machines


def _nodes(recording: Recording) -> Sequence[Json]:
    """The nodes; if they could not be read, those that the pods run on, with the labels that the pods ask for."""
    if recording.all(NODES):
        return recording.all(NODES)
    found: dict[str, dict[str, str]] = {}
    for pod in recording.all(PODS):
        name = pod["spec"]["nodeName"]
        found.setdefault(name, {"kubernetes.io/hostname": name}).update(pod["spec"].get("nodeSelector") or {})
    ready = {"spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    return [{"metadata": {"name": name, "uid": f"node-{name}", "labels": each}} | ready for name, each in found.items()]


def _serves(node: Json) -> bool:
    return condition_of((node.get("status") or {}).get("conditions") or (), "Ready").get("status") == "True"


def _machine(node: Json, recording: Recording) -> NodeSpec:
    """A machine with what the node can give to the pods of the clusters: the rest serves others."""
    meta, status = node["metadata"], node["status"]
    others = [
        each
        for each in recording.neighbours
        if each["spec"].get("nodeName") == meta["name"] and each["status"].get("phase") in ("Running", "Pending")
    ]
    free: Mapping[str, str] = status.get("allocatable") or {"cpu": "1000", "memory": "8Ti", "pods": "250"}
    left = {
        name: quantity.parse(free[name]) - sum((requested(each["spec"], name) for each in others), Decimal())
        for name in ("cpu", "memory")
    }
    labels = meta.get("labels") or {}
    addresses = {address["type"]: address["address"] for address in status.get("addresses") or ()}
    return NodeSpec(
        meta["name"],
        addresses.get("InternalIP", "192.168.0.1"),
        labels.get("topology.kubernetes.io/zone", ""),
        cpu=f"{int(left['cpu'] * 1000)}m",
        memory=str(int(left["memory"])),
        pods=int(free.get("pods", "250")) - len(others),
        labels=labels,
    )


# The objects


def _furnish(stage: Stage, recording: Recording, nodes: Sequence[Json], secrets: Sequence[Json]) -> None:
    """Put the objects of the recording into the world, and what they need although it was not read."""
    for namespace in dict.fromkeys(cluster["metadata"]["namespace"] for cluster in recording.clusters):
        if stage.admin.find(NAMESPACES, namespace) is None:
            stage.admin.create(NAMESPACES, {"metadata": {"name": namespace}})
    objects = dict(recording.objects) | {NODES: nodes}
    objects |= _revised(recording)
    objects[STORAGE_CLASSES] = recording.all(STORAGE_CLASSES) or list(_classes(recording))
    objects[PERSISTENT_VOLUMES] = recording.all(PERSISTENT_VOLUMES) or list(map(_volume, _bound(recording)))
    stage.world.take_over(objects)
    for secret in (*secrets, *_placeholders(recording, secrets)):
        stage.admin.create(SECRETS, secret, secret["metadata"]["namespace"])


def _revised(recording: Recording) -> Mapping[Resource, Sequence[Json]]:
    """StatefulSets, revisions and pods with the names that the world's controllers give to revisions."""
    names = {
        revision["metadata"]["name"]: f"{_set_of(revision)}-{template_hash(template_of(revision))}"
        for revision in recording.all(CONTROLLER_REVISIONS)
    }
    for stateful_set in (tree for resource in WORKLOADS for tree in recording.all(resource)):
        names[stateful_set["status"]["updateRevision"]] = revision_of(stateful_set, 1)["metadata"]["name"]
    revisions: dict[str, Json] = {}
    for revision in recording.all(CONTROLLER_REVISIONS):
        meta = revision["metadata"] | {"name": names[revision["metadata"]["name"]]}
        revisions[f"{meta['namespace']}/{meta['name']}"] = revision | {"metadata": meta}
    pods = []
    for pod in recording.all(PODS):
        labels = pod["metadata"].get("labels") or {}
        label = {HASH_LABEL: names.get(labels.get(HASH_LABEL, ""), labels.get(HASH_LABEL, ""))}
        pods.append(pod | {"metadata": pod["metadata"] | {"labels": labels | label}})
    sets = {
        resource: [_with_revisions(stateful_set, names) for stateful_set in recording.all(resource)]
        for resource in WORKLOADS
        if recording.all(resource)
    }
    return sets | {CONTROLLER_REVISIONS: list(revisions.values()), PODS: pods}


def _with_revisions(stateful_set: Json, names: Mapping[str, str]) -> Json:
    status = stateful_set["status"]
    revisions = {key: names.get(status.get(key, ""), status.get(key, "")) for key in _REVISIONS}
    return stateful_set | {"status": status | revisions}


_REVISIONS = ("currentRevision", "updateRevision")


def _set_of(revision: Json) -> str:
    return next(str(each["name"]) for each in revision["metadata"]["ownerReferences"] if each["kind"] == "StatefulSet")


def _bound(recording: Recording) -> Sequence[Json]:
    return [claim for claim in recording.all(PERSISTENT_VOLUME_CLAIMS) if claim["spec"].get("volumeName")]


def _classes(recording: Recording) -> Iterator[Json]:
    for name in {claim["spec"].get("storageClassName") or "" for claim in recording.all(PERSISTENT_VOLUME_CLAIMS)}:
        if name:
            yield standard_storage_class() | {"metadata": {"name": name}}


def _volume(claim: Json) -> Json:
    """A volume as its claim describes it."""
    meta, spec = claim["metadata"], claim["spec"]
    status = claim.get("status") or {}
    reference = {"apiVersion": "v1", "kind": PERSISTENT_VOLUME_CLAIMS.kind}
    reference |= {key: meta[key] for key in ("namespace", "name", "uid")}
    return {
        "metadata": {"name": spec["volumeName"], "uid": f"volume-of-{meta['uid']}", "labels": meta.get("labels") or {}},
        "spec": {
            "capacity": status.get("capacity") or spec["resources"]["requests"],
            "accessModes": spec["accessModes"],
            "storageClassName": spec.get("storageClassName", ""),
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": reference,
        },
        "status": {"phase": "Bound"},
    }


def _placeholders(recording: Recording, secrets: Sequence[Json]) -> Iterator[Json]:
    """Secrets that exist, or that pods use, with empty values for the keys that pods name."""
    keys: dict[tuple[str, str], set[str]] = {secret: set() for secret in recording.secrets}
    for pod in recording.all(PODS):
        namespace = pod["metadata"]["namespace"]
        for source in sources(pod, "secret"):
            name = source.get("secretName") or source.get("name", "")
            named = (*(source.get("items") or ()), source)
            keys.setdefault((namespace, name), set()).update(each["key"] for each in named if "key" in each)
    given = {(secret["metadata"]["namespace"], secret["metadata"]["name"]) for secret in secrets}
    for namespace, name in keys.keys() - given:
        data = {key: base64.b64encode(b"unknown").decode() for key in sorted(keys[namespace, name])}
        yield {"metadata": {"namespace": namespace, "name": name}, "type": _PLAIN, "data": data}


def _volumes(stage: Stage, recording: Recording, pods: Iterable[Json]) -> Volumes:
    def by_key(objects: Iterable[Json]) -> Mapping[tuple[str, str], Json]:
        return {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in objects}

    claims, config_maps = recording.all(PERSISTENT_VOLUME_CLAIMS), recording.all(CONFIG_MAPS)
    return Volumes(stage.world.data_plane, by_key(pods), by_key(claims), by_key(config_maps))


# The check


def _start(stage: Stage, recording: Recording) -> None:
    """Let the servers start. Raises CannotRehearse if not all become Ready."""
    names = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in recording.all(PODS)]

    def not_ready() -> list[str]:
        pods = {name: stage.world.mirror.get(PODS, *name) for name in names}
        return [f"{name[0]}/{name[1]}" for name, pod in pods.items() if pod is None or not _is_ready(pod)]

    stage.run(lambda: False, _SETTLES)
    if not stage.run(lambda: not not_ready(), _STARTS_WITHIN):
        raise CannotRehearse(f"the twin's pod {not_ready()[0]} does not become Ready, unlike the cluster's")


def _wanted(stage: Stage, settings: Settings) -> list[str]:
    """What an operator would write in the twin as it is."""
    planned: list[PlannedWrite] = []
    report = PlannedWrites(planned.append)
    stage.enter(
        settings,
        kubernetes=lambda transport: DryRunTransport(transport, report.add),
        dataplane=lambda transport: ReadOnlyTransport(transport, report.add_call),
    )
    stage.run(lambda: False, _OBSERVED)
    return [f"{write.verb} {write.resource} {write.name}".rstrip() for write in planned if not _is_of_the_twin(write)]


def _is_of_the_twin(write: PlannedWrite) -> bool:
    """True if a write concerns what has started again here: the pod of Discovery, and what servers forget."""
    labels = ((write.after or {}).get("metadata") or {}).get("labels") or {}
    is_discovery = write.resource == PODS.plural and labels.get(COMPONENT_LABEL) == "discovery"
    return is_discovery or any(part in write.resource for part in _FORGOTTEN)
