"""The objects that a live TiDB Operator v1.6 created for a cluster, and their comparison with ours.

Leaves are compared: `env` and `volumes` by name, `volumeMounts` by name and path, other lists by position. The order of
named items is one more leaf, since another order rolls pods. Digests and start scripts are masked. A recorded leaf that
we do not write must be one that the API server adds (objects.md 11.7).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from apis.accessor import find
from apis.cluster import Cluster
from apis.defaulting import with_defaults
from apis.tidbcluster import TidbCluster
from cli.fields.probe import desired_objects
from kube.objects import Json
from member.components import workload, workload_names
from member.lifecycle.workload import Workload

GOLDEN = Path(__file__).resolve().parents[2].parent / "shared" / "golden"
RECORDED_HERE = Path(__file__).with_name("recorded")
DISCOVERY_IMAGE = "pingcap/tidb-operator:v1.6.6"
KINDS = {"Service", "StatefulSet", "Deployment", "ConfigMap", "ServiceAccount", "Role", "RoleBinding"}

_OUR_SCRIPT = "Made by tidb-operator from the TidbCluster."
_MASKED = re.compile(r"-[0-9a-f]{7}$")

_NAMED = ("env", "volumes", "volumeMounts")
"""Lists whose items have names."""

_ANY = object()
_BOOKKEEPING = "/metadata/annotations/tidb.pingcap.com/owner-generation"
"""v1.6 writes it with each update; it is not part of the desired object (objects.md 11.5)."""

_ADDED_BY_SERVER: list[tuple[str, object]] = [
    (_BOOKKEEPING, _ANY),
    (r"/status/.*", _ANY),
    (r"/spec/(revisionHistoryLimit|progressDeadlineSeconds|persistentVolumeClaimRetentionPolicy/.*)", _ANY),
    (r"/spec/volumeClaimTemplates/\d+/(apiVersion|kind|status/phase|spec/volumeMode)", _ANY),
    (r"/metadata/annotations/deployment.kubernetes.io/revision", _ANY),
    (r"/spec/template/spec/schedulerName", "default-scheduler"),
    (r"/spec/template/spec/terminationGracePeriodSeconds", 30),
    (r"/spec/template/spec/serviceAccount", _ANY),
    (r"/spec/template/spec/volumes/[^/]+/(configMap|secret|downwardAPI)/defaultMode", 420),
    (r".*/fieldRef/apiVersion", "v1"),
    (r".*[cC]ontainers/\d+/terminationMessagePath", "/dev/termination-log"),
    (r".*[cC]ontainers/\d+/terminationMessagePolicy", "File"),
    (r".*/(initContainers/\d+|containers/[1-9]\d*)/imagePullPolicy", "IfNotPresent"),
    (r".*Probe/httpGet/scheme", "HTTP"),
    (r"/spec/template/spec/dnsPolicy", "ClusterFirst"),
    (r"/spec/template/spec/containers/\d+/ports/\d+/protocol", "TCP"),
    (r".*/containers/0/imagePullPolicy", "IfNotPresent"),
    (r".*Probe/(periodSeconds|timeoutSeconds|successThreshold|failureThreshold)", _ANY),
    (r"/spec/type", "ClusterIP"),
    (r"/spec/(clusterIP|clusterIPs/0|ipFamilies/[01]|healthCheckNodePort|ports/\d+/nodePort)", _ANY),
    (r"/spec/(internalTrafficPolicy|externalTrafficPolicy)", "Cluster"),
    (r"/spec/ipFamilyPolicy", "SingleStack"),
    (r"/spec/sessionAffinity", "None"),
    (r"/spec/allocateLoadBalancerNodePorts", True),
]

_NOT_RECORDED = re.compile(
    r"/metadata/ownerReferences/0/uid"
    r"|/metadata/annotations/(pingcap.com/last-applied-podtemplate|tidb.pingcap.com/start-script-options)"
)
"""Parts that recordings omit, and parts unknown to v1.6."""


def recorded(name: str) -> Json:
    """A recorded file; skips if the recordings are not beside the repository."""
    found = [path for path in (RECORDED_HERE / f"{name}.json", GOLDEN / f"{name}.json") if path.exists()]
    if not found:
        pytest.skip("the recordings of v1.6 are not beside the repository")
    tree: Json = json.loads(found[0].read_text())
    return tree


class Recording:
    """One recorded file."""

    def __init__(self, name: str, model: type[Cluster] = TidbCluster) -> None:
        """`model` is the kind of the clusters in question."""
        items: list[Json] = recorded(name)["items"]
        self.items = [item for item in items if item["kind"] in KINDS]
        self.claims = [item for item in items if item["kind"] == "PersistentVolumeClaim"]
        self.raw_clusters = [item for item in items if item["kind"] == model.__name__]
        self.clusters: list[Any] = [with_defaults(msgspec.convert(item, model)) for item in self.raw_clusters]
        self.objects = {identity(item): item for item in self.items}

    def built(self) -> dict[str, Json]:
        """Our objects for the same clusters."""
        return {identity(made): made for tc in self.clusters for made in desired_objects(tc, DISCOVERY_IMAGE)}


def workloads(tc: Cluster) -> list[Workload]:
    """The behaviours of the components that a cluster has and that are managed."""
    return [workload(name) for name in workload_names(tc.kind) if find(tc, name) is not None]


def identity(item: Json) -> str:
    """Kind and name, digests masked."""
    return f"{item['kind']}/{_MASKED.sub('', item['metadata']['name'])}"


def differences(recorded: Json, ours: Json) -> list[str]:
    """The differences, one line per leaf."""
    there, here = dict(_leaves(recorded, "")), dict(_leaves(ours, ""))
    lines = []
    for path in sorted(there.keys() | here.keys()):
        if path not in here and not _added_by_server(path, there[path]):
            lines.append(f"{path}: recorded {there[path]!r}, not ours")
        elif path not in there and not _NOT_RECORDED.fullmatch(path):
            lines.append(f"{path}: ours {here[path]!r}, not recorded")
        elif path in there and path in here and there[path] != here[path]:
            lines.append(f"{path}: recorded {there[path]!r}, ours {here[path]!r}")
    return lines


def as_applied(recorded: Json, ours: Json) -> Json:
    """The spec that v1.6 gave the API server and noted in its record: the recorded one without defaults (11.1, 11.7).

    Where a default may as well be what the user asked for, `ours` decides. The noise of v1.6's JSON is added, and the
    node ports stay, which it takes over from the live Service.
    """
    asked = dict(_leaves(ours, ""))
    spec: Json = _without_defaults({"spec": recorded["spec"]}, "", asked)["spec"]
    if recorded["kind"] == "StatefulSet":
        spec["template"]["metadata"]["creationTimestamp"] = None
        for claim in spec.get("volumeClaimTemplates") or ():
            claim["metadata"]["creationTimestamp"] = None
            claim["status"] = {}
    return spec


def _without_defaults(tree: Any, path: str, asked: dict[str, object]) -> Any:
    if isinstance(tree, list):
        name = path.rpartition("/")[2]
        return [_without_defaults(item, f"{path}/{_key(name, item, index)}", asked) for index, item in enumerate(tree)]
    if not isinstance(tree, dict):
        return tree
    kept = {}
    for key, value in tree.items():
        below = f"{path}/{key}"
        is_default = _added_by_server(f"{below}/0" if isinstance(value, list) else below, value)
        if not is_default or key == "nodePort" or asked.get(below) == value:
            kept[key] = _without_defaults(value, below, asked)
    return kept


def _added_by_server(path: str, value: object) -> bool:
    return any(
        re.fullmatch(pattern, path) and (allowed is _ANY or allowed == value) for pattern, allowed in _ADDED_BY_SERVER
    )


def _leaves(tree: Any, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(tree, dict):
        if not tree and path.endswith("/emptyDir"):
            yield path, {}
        for key, value in tree.items():
            yield from _leaves(value, f"{path}/{key}")
    elif isinstance(tree, list):
        name = path.rpartition("/")[2]
        keys = [_key(name, item, index) for index, item in enumerate(tree)]
        if name in _NAMED:
            yield f"{path}/#order", keys
        for key, item in zip(keys, tree, strict=True):
            yield from _leaves(item, f"{path}/{key}")
    elif path == "/data/startup-script" or tree == "<script>" or _OUR_SCRIPT in str(tree):
        yield path, "masked"
    elif "/command/" in path and isinstance(tree, str) and "\n" in tree:
        # recordings leave out the scripts that stand in pods
        yield path, "<script>"
    elif tree is not None:
        yield path, _MASKED.sub("", tree) if isinstance(tree, str) else tree


def _key(name: str, item: Any, index: int) -> str:
    if name not in _NAMED:
        return str(index)
    path = item.get("mountPath", "").replace("/", "|")
    return f"{item['name']}{path}"
