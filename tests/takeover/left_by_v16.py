"""A sandbox as TiDB Operator v1.6 leaves it: the recorded objects exist, and pods run (objects.md 10 to 12).

Recordings leave out UIDs, the bodies of start scripts, the contents of Secrets, and v1.6's records of its writes. This
module fills them in as v1.6 would. Ids come from the sandbox's PD.
"""

import base64
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

import kube.resources
from apis.cluster import Cluster
from apis.cluster_kinds import CLUSTER_MODELS
from apis.components import component_types
from apis.dashboards import TidbDashboard
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.identity import tls_enabled
from apis.ng_monitorings import TidbNGMonitoring
from apis.tidbcluster import TidbCluster
from cli.fields.probe import desired_objects
from kube.client import Client
from kube.errors import AlreadyExists, NotFound
from kube.objects import Json, Object
from kube.resources import (
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
    STORAGE_CLASSES,
    Resource,
)
from member import dashboard as dash
from member.labels import CLUSTER_ID, LAST_APPLIED, LAST_APPLIED_POD_TEMPLATE, MEMBER_ID, POD_NAME, STORE_ID
from member.monitor.objects import everything
from member.ng_monitoring import desired as ngm
from ports.clock import FakeClock
from ports.transport import Request, Transport
from sandbox.controllers.volumes import standard_storage_class
from sandbox.dataplane.network import Origin
from sandbox.dataplane.runtime import DataPlane
from sandbox.dataplane.tls import Certificate
from sandbox.directory import CLUSTER_DOMAIN
from sandbox.kubelet.nodes import NodeSpec
from tests.certificates import Authority, Pair, hosts_of
from tests.member.recordings import DISCOVERY_IMAGE, as_applied, identity
from tests.member.test_recordings_of_monitors import monitor_inputs
from tests.operator_world import OperatorWorld
from tests.sandbox.clusters import get
from tests.sandbox.scripts import script

_KINDS = {
    each.kind: each
    for each in vars(kube.resources).values()
    if isinstance(each, Resource) and each != kube.resources.ADVANCED_STATEFUL_SETS
}
_OWNERS = ("TidbCluster", "DMCluster", "BackupSchedule")
"""The kinds that own objects of other pingcap.com kinds."""
_WORKLOADS = ("StatefulSet", "Deployment")
_CUSTOM = "pingcap.com/v1alpha1"
_SCRIPTED = ("pd", "tikv", "tidb")
"""Components with v1.6-like scripts; the others run ours, without v1.6's mark."""
_MARK = "Made by tidb-operator from the TidbCluster."
_INIT = """set -ex
ordinal=${POD_NAME##*-}
sed s/POD_NUM/${ordinal}/g /etc/tiflash/config_templ.toml > /data0/config.toml
sed s/POD_NUM/${ordinal}/g /etc/tiflash/proxy_templ.toml > /data0/proxy.toml
"""
"""The init container of v1.6's TiFlash."""
_OF_KUBERNETES = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
_BINDING = ("pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/")
_SHORT = {
    "region": "topology.kubernetes.io/region",
    "zone": "topology.kubernetes.io/zone",
    "host": "kubernetes.io/hostname",
}
_IDS = (CLUSTER_ID, MEMBER_ID, STORE_ID)

NODES = [
    NodeSpec(f"{part}-{zone}", f"192.168.{row}.{zone}", f"zone-{zone}", labels={"dedicated": part, "type": "kwok"})
    for row, part in enumerate(("pd", "tikv", "tidb"))
    for zone in range(3)
]
"""The machines that the production-like recording needs."""


class LeftObjects:
    """Everything that v1.6 has made, in some Kubernetes, running."""

    def __init__(
        self,
        items: Iterable[Json],
        admin: Client,
        data_plane: DataPlane,
        settle: Callable[[Callable[[], bool]], object],
        pvs: Iterable[Json] = (),
    ) -> None:
        """`items` are the objects of a recording, `pvs` its volumes; `settle` lets pods come up until all are Ready."""
        self.items = [_in_this_domain(each) for each in items]
        self.clusters: list[Cluster] = [
            with_defaults(msgspec.convert(item, CLUSTER_MODELS[item["kind"]])) for item in self._clusters()
        ]
        self._admin, self._plane = admin, data_plane
        built = [made for tc in self.clusters for made in desired_objects(tc, DISCOVERY_IMAGE)]
        self._ours = {identity(made): made for made in (*built, *_monitoring(self.items))}
        self._pair = _certificate(self._clusters())
        self._uids: dict[str, str] = {}
        self._owners: dict[tuple[str, str, str], str] = {}
        self._put()
        settle(lambda: not self.not_ready())
        for item in self._clusters():
            self._finish(item)
        for volume in pvs:
            self._mark_volume(volume)

    @property
    def name(self) -> str:
        """The first cluster's."""
        return self.clusters[0].metadata.name

    @property
    def namespace(self) -> str:
        """The first cluster's."""
        return self.clusters[0].metadata.namespace

    def pods(self) -> dict[str, str]:
        """UIDs of the pods of all workloads but Discovery, by name."""
        pods = (each.metadata for each in self._pods())
        return {each.name: each.uid for each in pods if "discovery" not in each.name}

    def objects(self) -> dict[str, Json]:
        """The inputs of v1.6's comparisons, as they are now, by kind and name."""
        compared = (item for item in self.items if item["kind"] in ("StatefulSet", "Service", "ConfigMap"))
        return {f"{item['kind']}/{item['metadata']['name']}": self._live(item) for item in compared}

    def not_ready(self) -> list[str]:
        """The pods that do not run as they should."""
        pods = [each.decode() for each in self._pods()]
        return [each["metadata"]["name"] for each in pods if not _is_well(each)] if pods else ["all"]

    def _pods(self) -> list[Object]:
        namespaces = {item["metadata"]["namespace"] for item in self.items}
        return [pod for each in sorted(namespaces) for pod in self._admin.list_page(PODS, each).items]

    def live(self, kind: str, name: str, namespace: str) -> Json:
        """An object as it is now."""
        return self._admin.get(_KINDS[kind], name, namespace).decode()

    def _live(self, item: Json) -> Json:
        return self.live(item["kind"], item["metadata"]["name"], item["metadata"]["namespace"])

    def _clusters(self) -> list[Json]:
        return [item for item in self.items if item["kind"] in CLUSTER_MODELS]

    def _put(self) -> None:
        for namespace in sorted({item["metadata"]["namespace"] for item in self.items}):
            if self._admin.find(NAMESPACES, namespace) is None:
                self._admin.create(NAMESPACES, {"metadata": {"name": namespace}})
        for name in _storage_classes(self.items):
            self._admin.create(STORAGE_CLASSES, standard_storage_class() | {"metadata": {"name": name}})
        self._create_secrets()
        for item in sorted(self.items, key=_turn):
            self._create(item)

    def _create_secrets(self) -> None:
        """Create the Secrets that pods mount or Discovery reads, and that the recording lacks."""
        known = {(item["metadata"]["namespace"], item["metadata"]["name"]) for item in self.items}
        for namespace, name in sorted({*_mounted_secrets(self.items), *_client_secrets(self.clusters)} - known):
            self._admin.create(SECRETS, self._pair.secret(name), namespace)

    def _create(self, item: Json) -> None:
        resource, meta = _KINDS[item["kind"]], item["metadata"]
        body = self._with_new_uids(as_v16_left_it(item, self._ours.get(identity(item), {}), self._tells(item)))
        for owner in body["metadata"].get("ownerReferences") or ():
            owner["uid"] = self._owners.get((owner["kind"], meta["namespace"], owner["name"]), "gone")
        if item["kind"] == "Secret":
            known = (self._ours.get(identity(item)) or {}).get("data") or {}
            data = {key: known.get(key, "<bytes>") for key in body.get("data") or ()}
            body["data"] = {key: self._filled(key) if text == "<bytes>" else text for key, text in data.items()}
        try:
            made = self._admin.create(resource, body, meta["namespace"])
        except AlreadyExists:
            return
        self._owners[item["kind"], meta["namespace"], meta["name"]] = made.metadata.uid
        if old := meta.get("uid"):
            self._uids[old] = made.metadata.uid
            noted = self._with_new_uids(body)["metadata"]["annotations"]
            self._admin.patch(resource, meta["name"], meta["namespace"], {"metadata": {"annotations": noted}})
        # a cluster's status comes last: with a known id, PD does not bootstrap
        has_status = item["kind"] == "Job" or (item["apiVersion"] == _CUSTOM and item["kind"] not in CLUSTER_MODELS)
        if has_status and item.get("status"):
            self._write_status(item, item["status"])

    def _with_new_uids(self, body: Json) -> Json:
        """A recorded object that names others by the UIDs that they have here."""
        text = json.dumps(body)
        for old, new in self._uids.items():
            text = text.replace(old, new)
        found: Json = json.loads(text)
        return found

    def _tells(self, item: Json) -> Cluster | None:
        """The cluster of an object."""
        owners = {(each["kind"], each["name"]) for each in item["metadata"].get("ownerReferences") or ()}
        own = (tc for tc in self.clusters if (tc.kind, tc.metadata.name) in owners)
        return next(own, None)

    def _filled(self, key: str) -> str:
        pair = self._pair
        parts = {"ca.crt": pair.ca, "tls.crt": pair.cert, "tls.key": pair.key}
        data = next((data for end, data in parts.items() if key.endswith(end)), b"value")
        return base64.b64encode(data).decode()

    def _finish(self, item: Json) -> None:
        """Ids as v1.6 has them from PD: in the status, and on pods, claims and volumes (objects.md 12)."""
        namespace = item["metadata"]["namespace"]
        if item["kind"] != "TidbCluster" or not _has_pd(item, self._plane, namespace):
            self._write_status(item, item.get("status") or {})
            return
        cluster_id, members, stores = self._ids(item)
        self._label_stores(item)
        status = _with_ids(item.get("status") or {}, cluster_id, members, stores)
        self._write_status(item, status)
        ids = {pod: {MEMBER_ID: each} for pod, each in members.items()}
        ids |= {pod: {STORE_ID: each} for pod, each in stores.items()}
        for pod in self._admin.list_page(PODS, namespace, label_selector=_of(item)).items:
            labels = {CLUSTER_ID: cluster_id} | ids.get(pod.metadata.name, {})
            self._admin.patch(PODS, pod.metadata.name, namespace, {"metadata": {"labels": labels}})
            for volume in pod.decode()["spec"]["volumes"]:
                claim = (volume.get("persistentVolumeClaim") or {}).get("claimName", "")
                if claim.endswith(pod.metadata.name):
                    self._mark_claim(claim, pod.metadata.name, namespace, labels, item["spec"]["pvReclaimPolicy"])

    def _write_status(self, item: Json, status: Json) -> None:
        resource, meta = _KINDS[item["kind"]], item["metadata"]
        try:
            patch = {"status": status}
            self._admin.patch(resource, meta["name"], meta["namespace"], patch, subresource="status")
        except NotFound:  # a kind without that subresource
            self._admin.patch(resource, meta["name"], meta["namespace"], patch)

    def _mark_claim(self, name: str, pod: str, namespace: str, labels: dict[str, str], policy: str) -> None:
        mark = {POD_NAME: pod}
        marks = {"labels": labels | mark, "annotations": mark}
        claim = self._admin.patch(PERSISTENT_VOLUME_CLAIMS, name, namespace, {"metadata": marks}).decode()
        carried = {key: value for key, value in claim["metadata"]["labels"].items() if key != POD_NAME}
        volume_marks = {"labels": carried | {"app.kubernetes.io/namespace": namespace}, "annotations": mark}
        patch = {"metadata": volume_marks, "spec": {"persistentVolumeReclaimPolicy": policy}}
        self._admin.patch(PERSISTENT_VOLUMES, claim["spec"]["volumeName"], "", patch)

    def _mark_volume(self, recorded: Json) -> None:
        """Marks and policy of a volume as recorded, but for ids."""
        there = recorded["spec"].get("claimRef") or {}
        found = self._admin.find(PERSISTENT_VOLUME_CLAIMS, there.get("name", ""), there.get("namespace", ""))
        volume = found.decode()["spec"].get("volumeName", "") if found else ""
        if not volume:
            return
        meta = recorded["metadata"]
        marks = {kind: _without(meta.get(kind) or {}, (*_IDS, *_BINDING)) for kind in ("labels", "annotations")}
        policy = {"persistentVolumeReclaimPolicy": recorded["spec"]["persistentVolumeReclaimPolicy"]}
        self._admin.patch(PERSISTENT_VOLUMES, volume, "", {"metadata": marks, "spec": policy})

    def _ids(self, item: Json) -> tuple[str, dict[str, str], dict[str, str]]:
        """The cluster's id, and the ids of members and stores by pod."""
        members = {
            each["name"].partition(".")[0]: str(each["member_id"]) for each in self.pd(item, "members")["members"]
        }
        stores = (each["store"] for each in self.pd(item, "stores").get("stores") or ())
        by_pod = {store["address"].partition(".")[0]: str(store["id"]) for store in stores}
        return str(self.pd(item, "cluster")["id"]), members, by_pod

    def _label_stores(self, item: Json) -> None:
        """The location labels of the stores that v1.6 has sent to PD (lifecycle.md 7.9)."""
        keys = self.pd(item, "config/replicate").get("location-labels", "").split(",")
        for store in (each["store"] for each in self.pd(item, "stores").get("stores") or ()):
            name, _, namespace = store["address"].split(".")[:3]
            pod = self._admin.get(PODS, name, namespace).decode()
            there = self._admin.get(kube.resources.NODES, pod["spec"]["nodeName"], "").metadata.labels
            labels = {key: there.get(key) or there.get(_SHORT.get(key, ""), "") for key in keys if key}
            if known := {key: value for key, value in labels.items() if value}:
                self._pd(item).request(
                    Request("POST", f"{self._base(item)}/store/{store['id']}/label", {}, json.dumps(known).encode())
                )

    def pd(self, item: Json, path: str) -> Json:
        """The answer of a cluster's PD."""
        answer: Json = get(self._pd(item), f"{self._base(item)}/{path}")
        return answer

    def _pd(self, item: Json) -> Transport:
        certificate = Certificate.of(self._pair) if _has_tls(item) else None
        return self._plane.transport(Origin(item["metadata"]["namespace"], certificate=certificate))

    def _base(self, item: Json) -> str:
        meta = item["metadata"]
        name = meta["name"] if "pd" in item["spec"] else item["spec"]["cluster"]["name"]
        return f"{'https' if _has_tls(item) else 'http'}://{name}-pd.{meta['namespace']}:2379/pd/api/v1"


class Left(LeftObjects):
    """The same in a separate sandbox, with an operator that has not started yet."""

    def __init__(
        self, items: Iterable[Json], clock: FakeClock, pvs: Iterable[Json] = (), crds: Sequence[Json] = ()
    ) -> None:
        """`crds`: those that are installed, ours by default."""
        self.world = OperatorWorld(clock=clock, nodes=NODES, crds=crds)
        super().__init__(items, self.world.admin, self.world.world.data_plane, self._settle, pvs)
        self.world.world.run_until_settled()
        self.world.forget()

    def _settle(self, is_ready: Callable[[], bool]) -> None:
        for _ in range(6):
            self.world.world.run_until_settled()
            if is_ready():
                return
            self.world.world.advance(10.0)


def _has_tls(item: Json) -> bool:
    return bool((item["spec"].get("tlsCluster") or {}).get("enabled"))


def as_v16_left_it(recorded: Json, ours: Json, tc: Cluster | None = None) -> Json:
    """A recorded object with the parts that the recording omits, and without Kubernetes' own additions.

    `ours` is our operator's object, `tc` the cluster.
    """
    tree: Json = json.loads(json.dumps(recorded))
    meta = tree["metadata"]
    for key in ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"):
        meta.pop(key, None)
    tree.pop("status", None)
    annotations: dict[str, str] = meta.get("annotations") or {}
    meta["annotations"] = annotations
    match tree["kind"]:
        case "StatefulSet":
            _with_scripts(tree["spec"]["template"]["spec"], ours)
            annotations.setdefault(LAST_APPLIED, json.dumps(as_applied(tree, ours)))
        case "Service" | "Ingress":
            annotations.setdefault(LAST_APPLIED, json.dumps(as_applied(tree, ours)))
        case "Deployment":
            asked = as_applied(recorded, ours)["template"]["spec"]
            annotations.setdefault(LAST_APPLIED_POD_TEMPLATE, json.dumps(asked))
        case "ConfigMap":
            _with_start_script(tree, ours, tc)
        case "Job":
            tree["spec"].pop("selector", None)
            for each in (meta, tree["spec"]["template"]["metadata"]):
                each["labels"] = _without(each.get("labels") or {}, _OF_KUBERNETES)
        case "PersistentVolumeClaim":
            meta.pop("finalizers", None)
            meta["labels"] = _without(meta.get("labels") or {}, _IDS)
            meta["annotations"] = _without(annotations, _BINDING)
            tree["spec"].pop("volumeName", None)
    return tree


def _with_scripts(pod: Json, ours: Json) -> None:
    """Fill in scripts that stand in commands."""
    built = ours["spec"]["template"]["spec"] if ours else {}
    for kind in ("containers", "initContainers"):
        texts = {each["name"]: (each.get("command") or [""])[-1] for each in built.get(kind) or ()}
        for container in pod.get(kind) or ():
            made = texts.get(container["name"], "")
            fills_in = "/etc/tiflash" in made and "PD_ADDR" not in made
            text = _INIT if fills_in else made.replace(_MARK, "") or "true"
            for key in ("command", "args"):
                if key in container:
                    container[key] = [text if word == "<script>" else word for word in container[key]]


def _with_start_script(tree: Json, ours: Json, tc: Cluster | None) -> None:
    data, labels = tree.get("data") or {}, tree["metadata"].get("labels") or {}
    for key, text in data.items():
        if text == "<start script>":
            built: str = (ours.get("data") or {}).get(key, "true")
            component = labels["app.kubernetes.io/component"]
            own = tc is not None and component in _SCRIPTED and _is_usual(tc)
            data[key] = script(component, tls=tls_enabled(tc)) if tc and own else f"{built.replace(_MARK, '')}# v1.6\n"


def _is_usual(tc: Cluster) -> bool:
    """True if v1.6-like scripts are sufficient."""
    spec: Json = msgspec.to_builtins(tc.spec)
    others = ("acrossK8s", "cluster", "clusterDomain", "pdms")
    return spec.get("startScriptVersion", "v1") == "v1" and not any(spec.get(each) for each in others)


def _mounted_secrets(items: list[Json]) -> Iterator[tuple[str, str]]:
    for item in items:
        pod = item["spec"]["template"]["spec"] if item["kind"] in _WORKLOADS else {}
        for volume in pod.get("volumes") or ():
            if "secret" in volume:
                yield item["metadata"]["namespace"], volume["secret"]["secretName"]


def _client_secrets(clusters: list[Cluster]) -> Iterator[tuple[str, str]]:
    for tc in clusters:
        if tls_enabled(tc):
            yield tc.metadata.namespace, f"{tc.metadata.name}-cluster-client-secret"


def _monitoring(items: list[Json]) -> Iterator[Json]:
    """Our operator's objects for monitors and the like."""
    by_name = {f"{item['kind']}/{item['metadata']['name']}": item for item in items}

    def named(name: str) -> TidbCluster:
        return with_defaults(decode(by_name[f"TidbCluster/{name}"], TidbCluster))

    for item in items:
        match item["kind"]:
            case "TidbMonitor":
                yield from (body | {"kind": resource.kind} for resource, body in everything(*monitor_inputs(items)))
            case "TidbNGMonitoring":
                found = decode(item, TidbNGMonitoring)
                yield ngm.service(found) | {"kind": "Service"}
                yield ngm.stateful_set(found, named(found.spec.clusters[0].name), "") | {"kind": "StatefulSet"}
            case "TidbDashboard":
                board = decode(item, TidbDashboard)
                yield dash.service(board) | {"kind": "Service"}
                yield dash.stateful_set(board, named(board.spec.clusters[0].name)) | {"kind": "StatefulSet"}


def _in_this_domain(item: Json) -> Json:
    """A recorded object under the domain of this Kubernetes, where the recording is of several."""
    text = re.sub(r"(north|south)\.example\.com", CLUSTER_DOMAIN, json.dumps(item))
    tree: Json = json.loads(text)
    return tree


def _turn(item: Json) -> tuple[bool, bool, bool, bool]:
    """Owners before their dependents, workloads last."""
    kind, owned = item["kind"], bool(item["metadata"].get("ownerReferences"))
    return (owned and kind not in _OWNERS, item["apiVersion"] != _CUSTOM, kind not in _OWNERS, kind in _WORKLOADS)


def _without(tree: Json, prefixes: Iterable[str]) -> Json:
    return {key: value for key, value in tree.items() if not key.startswith(tuple(prefixes))}


def _storage_classes(items: list[Json]) -> list[str]:
    """The classes that volumes ask for by name, but the one that there is."""
    templates = (claim for item in items for claim in item.get("spec", {}).get("volumeClaimTemplates") or ())
    claims = (item for item in items if item["kind"] == "PersistentVolumeClaim")
    asked = {each["spec"].get("storageClassName") or "" for each in (*templates, *claims)}
    return sorted(asked - {"", "standard"})


def _with_ids(status: Json, cluster_id: str, members: dict[str, str], stores: dict[str, str]) -> Json:
    """A status with the ids of this world's members and stores in place of the recorded ones."""
    made: Json = json.loads(json.dumps(status)) | {"clusterID": cluster_id}
    pd = made.get("pd") or {}
    known = {**(pd.get("members") or {}), **(pd.get("peerMembers") or {})}
    for member in (*known.values(), pd.get("leader") or {}):
        if pod := member.get("name", "").partition(".")[0]:
            member["id"] = members.get(pod, member["id"])
    for component, key in itertools.product(("tikv", "tiflash"), ("stores", "peerStores")):
        if there := (made.get(component) or {}).get(key):
            own = {stores.get(each["podName"], old): each for old, each in there.items()}
            made[component][key] = {new: each | {"id": new} for new, each in own.items()}
    return made


def _has_pd(item: Json, data_plane: DataPlane, namespace: str) -> bool:
    name = item["metadata"]["name"] if "pd" in item["spec"] else (item["spec"].get("cluster") or {}).get("name", "")
    return data_plane.pd_cluster(namespace, name) is not None


def _of(item: Json) -> str:
    meta = item["metadata"]
    instance = (meta.get("labels") or {}).get("app.kubernetes.io/instance", meta["name"])
    return f"app.kubernetes.io/instance={instance},app.kubernetes.io/name=tidb-cluster"


def _is_well(pod: Json) -> bool:
    phase = pod.get("status", {}).get("phase")
    conditions = {each["type"]: each["status"] for each in pod.get("status", {}).get("conditions") or ()}
    return phase == "Succeeded" or conditions.get("Ready") == "True"


def _certificate(clusters: Iterable[Json]) -> Pair:
    """One certificate for all."""
    names: set[str] = set()
    for cluster in clusters:
        name, namespace = cluster["metadata"]["name"], cluster["metadata"]["namespace"]
        for row in component_types(cluster["kind"]):
            names.update(hosts_of(row.name, name, namespace))
        names.update((f"{name}-discovery", f"{name}-discovery.{namespace}", f"{name}-discovery.{namespace}.svc"))
        names.update((f"{name}-pump", f"*.{name}-pump", f"*.{name}-pump.{namespace}.svc"))
    names |= {f"{each}.{CLUSTER_DOMAIN}" for each in names if each.endswith(".svc")}
    return Authority().pair(*sorted(names))
