"""Clusters in which a field has a meaning, and a value for it: the input of `cli.fields.probe`.

Sizes, names and addresses are examples. Each value is valid at its path; the probe checks it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import msgspec

from apis.components import component_types
from kube.objects import Json
from member.fields.declared import ITEM, last_fit

NAMES: Json = {"name": "demo", "namespace": "ns", "uid": "uid-of-demo"}

_DATA: Json = {"storage": "1Gi"}
_MORE: tuple[Json, ...] = (
    {"version": "v8.5.2"},
    {"pd": {"mode": "ms"}},
    {"tidb": {"service": {"type": "ClusterIP"}}},
    {"ticdc": {"config": {"per-table-memory-quota": 10485760}}},
    {"tici": {"s3": {"endpoint": "https://s3.example.com", "bucket": "indexes"}}},
)


def _every_component() -> Json:
    """A spec with every component, and with one of the microservices."""
    spec: Json = {}
    for row in component_types():
        if row.default_image:
            own: Json = {"replicas": 2, "config": {}}
            own |= {"requests": _DATA} if row.data_volume else {}
            own |= {"storageClaims": [{"resources": {"requests": _DATA}}]} if row.storage_claims else {}
            spec = _merged(row.slot.tree(own), spec)
    return reduce(_merged, _MORE, spec)


@dataclass(frozen=True, slots=True)
class Setting:
    """A cluster with every component, changed by `patch` (RFC 7386); `title` is the difference from the first one."""

    title: str
    patch: Json = field(default_factory=dict)


_NO_TICI: Json = {"tici": None}
"""Of features with which full-text search does not work."""
_TLS: Json = {"tlsCluster": {"enabled": True}, "tidb": {"tlsClient": {"enabled": True}}} | _NO_TICI
_ELSEWHERE: Json = {"pd": None, "pdms": None, "cluster": {"name": "other", "namespace": "elsewhere"}} | _NO_TICI

SETTINGS = (
    Setting(""),
    Setting("with TLS", _TLS),
    Setting("without `spec.pd.mode: ms`", {"pd": {"mode": ""}}),
    Setting("without `spec.pd`", _ELSEWHERE),
    Setting("with `spec.startScriptVersion: v2`", {"startScriptVersion": "v2"}),
)
"""The settings, tried in this order until a field has an effect."""

_CONTAINER = {"name": "beside", "image": "busybox:1"}
_SCRATCH: Json = {
    "additionalVolumes": [{"name": "scratch", "emptyDir": {}}],
    "additionalVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
}
_NATIVE: Json = {"useSidecar": True}
_VOLUME: Json = {"name": "more", "storageSize": "1Gi", "mountPath": "/more"}
_FROM_ADDRESSES: Json = {
    "startScriptVersion": "v2",
    "startScriptV2FeatureFlags": ["PreferPDAddressesOverDiscovery"],
} | _NO_TICI
SKIPS_TLS = "tidb.tidb.pingcap.com/skip-tls-when-connect-tidb"


@dataclass(frozen=True, slots=True)
class Needs:
    """Further settings that a field needs: of the cluster, of the component, and annotations."""

    cluster: Json = field(default_factory=dict)
    own: Json = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


_NESTED = {"tici": 2}
"""The length of the path to a component's section, by its first field."""

_NEEDS: Mapping[str, Needs] = {
    "*.image": Needs({"version": None}, {"baseImage": ""}),
    "*.slowLogTailer.image": Needs(),
    "*.customizedStartupProbe.image": Needs(),
    "cluster.*": Needs(_ELSEWHERE),
    "helper.image": Needs(),
    "acrossK8s": Needs(_NO_TICI),
    "tlsCluster.enabled": Needs(_NO_TICI),
    "tidb.initializer.createPassword": Needs(_NO_TICI),
    "pdAddresses": Needs(_FROM_ADDRESSES),
    "*.storageClassName": Needs(own={"storageVolumes": [_VOLUME]}),
    "*.volumeAttributesClassName": Needs(own={"storageVolumes": [_VOLUME]}),
    "services*": Needs({"pd": {"service": {"type": ""}}}),
    "tidb.service.loadBalancer*": Needs(own={"service": {"type": "LoadBalancer"}}),
    "tidb.slowLogVolumeName": Needs(own=_SCRATCH),
    "tidb.tlsClient.*": Needs(_TLS),
    "tidb.tlsClient.enabled": Needs(),
    "tikv.*LogVolumeName": Needs(own={"separateRocksDBLog": True, "separateRaftLog": True} | _SCRATCH),
    "tikv.logTailer.*": Needs(own={"separateRocksDBLog": True, "separateRaftLog": True}),
    "tidb.slowLogTailer.sleepTimeSeconds": Needs(own={"slowLogTailer": _NATIVE}),
    "tikv.logTailer.sleepTimeSeconds": Needs(own={"separateRaftLog": True, "logTailer": _NATIVE}),
    "tiflash.logTailer.sleepTimeSeconds": Needs(own={"logTailer": _NATIVE}),
    "tiproxy.readinessProbe.*": Needs(own={"readinessProbe": {"type": "tcp"}}),
    "tiproxy.readinessProbe.type": Needs(),
    "tiproxy.sslEnableTiDB": Needs(_TLS, annotations={SKIPS_TLS: "true"}),
    "tlsCluster.enableDiscoveryMTLS": Needs({"tlsCluster": {"enabled": True}} | _NO_TICI),
}
"""The needs by globs of paths; the last match counts."""

_ITEMS: Mapping[str, Json] = {
    "services": {"name": "pd", "type": "NodePort"},
    "storageClaims": {"resources": {"requests": _DATA}},
    "storageVolumes": _VOLUME,
    "topologySpreadConstraints": {"topologyKey": "kubernetes.io/hostname"},
}
"""An example entry for each list, by the list's name; the probe changes one field of it."""

_PARENTS: Mapping[str, Json] = {
    "customizedStartupProbe": {"image": "busybox:1", "binaryName": "ready"},
    "livenessProbe": {"periodSeconds": 7},
    "readinessProbe": {"periodSeconds": 7},
}
"""The other content of a table whose field is changed, by the table's name."""

VALUES: Mapping[str, object] = {
    "additionalContainers": [_CONTAINER],
    "additionalPorts": [{"name": "more", "port": 9999}],
    "additionalVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    "additionalVolumes": [{"name": "scratch", "emptyDir": {}}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "annotations": {"example.com/team": "blue"},
    "arguments": ["--log-file=/tmp/tidb.log"],
    "automountServiceAccountToken": False,
    "binlogEnabled": False,
    "baseImage": "mirror.example.com/image",
    "cluster.clusterDomain": "cluster.remote",
    "certLayout": "v1",
    "claims": [{"name": "gpu"}],
    "clusterDomain": "cluster.local",
    "clusterIP": "10.0.0.7",
    "config": {"log": {"level": "warn"}},
    "configUpdateStrategy": "RollingUpdate",
    "discovery.suspendAction.suspendStatefulSet": True,
    "dnsConfig": {"searches": ["example.com"]},
    "dnsPolicy": "Default",
    "endpoint": "https://s3.eu-west-1.amazonaws.com",
    "sinkURI": "s3://changes/tici?protocol=canal-json",
    "env": [{"name": "COLOR", "value": "blue"}],
    "envFrom": [{"configMapRef": {"name": "colors", "optional": True}}],
    "evictLeaderTimeout": "3m",
    "exposeStatus": False,
    "externalTrafficPolicy": "Local",
    "gracefulShutdownTimeout": "3m",
    "image": "mirror.example.com/image:v8.5.2",
    "imagePullPolicy": "Always",
    "imagePullSecrets": [{"name": "registry"}],
    "initContainers": [_CONTAINER],
    "labels": {"example.com/team": "blue"},
    "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
    "limits": {"cpu": "2"},
    "livenessProbe.type": "command",
    "loadBalancerSourceRanges": ["10.0.0.0/8"],
    "matchLabels": {"app.kubernetes.io/instance": "another"},
    "mountPath": "/elsewhere",
    "nodeAffinityPolicy": "Ignore",
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "pdAddresses": ["http://pd.example.com:2379"],
    "pdms[].name": "scheduling",
    "podManagementPolicy": "OrderedReady",
    "podSecurityContext": {"fsGroup": 1000},
    "proxy": {"log-level": "warn"},
    "pump.podManagementPolicy": "Parallel",
    "pvReclaimPolicy": "Delete",
    "raftLogVolumeName": "scratch",
    "requests": {"cpu": "1"},
    "requests.storage": "2Gi",
    "readinessProbe.type": "command",
    "resources": {"requests": {"storage": "2Gi"}},
    "rocksDBLogVolumeName": "scratch",
    "securityContext": {"runAsGroup": 1000},
    "separateSlowLog": False,
    "serverLabels": {"team": "blue"},
    "services[].name": "tso",
    "services[].type": "LoadBalancer",
    "setTimeZone": True,
    "slowLogVolumeName": "scratch",
    "startScriptV2FeatureFlags": ["NoWaitDNS"],
    "startScriptVersion": "v2",
    "statefulSetUpdateStrategy": "OnDelete",
    "storageSize": "2Gi",
    "timezone": "Asia/Shanghai",
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "topologyKey": "topology.kubernetes.io/zone",
    "type": "NodePort",
    "usePathStyle": False,
    "version": "v8.5.3",
    "waitLeaderTransferBackTimeout": "3m",
}
"""The sample values of fields, by path or its end, the longer first; other values follow from the type."""


class Pair(NamedTuple):
    """Two undefaulted clusters, without a field and with it; `title` names the setting that both have."""

    title: str
    before: Json
    after: Json


def pairs(path: str, node: Json, *, alone: bool = False) -> Iterator[Pair]:
    """Clusters to compare for a field with a schema, one pair for each setting that has its component.

    `alone`: without the further settings that the field needs.
    """
    needs = Needs() if alone else last_fit(path, _NEEDS) or Needs()
    top = path.partition(".")[0].removesuffix(ITEM)
    base = _every_component()
    for setting in SETTINGS:
        spec = _merged(_merged(_fresh(base), setting.patch), needs.cluster)
        if top in base and top not in spec:
            continue
        _prepare(spec, path)
        if needs.own:
            _change_own(spec, path, needs.own)
        before = {"metadata": NAMES | {"annotations": dict(needs.annotations)}, "spec": spec}
        after = _fresh(before)
        table, name = _walk(after["spec"], path)
        table[name] = _value(path, node, table.get(name))
        yield Pair(setting.title, before, after)


def _fresh(tree: Json) -> Json:
    copy: Json = msgspec.json.decode(msgspec.json.encode(tree))
    return copy


def _prepare(spec: Json, path: str) -> None:
    """Give the lists and tables on the way to a field their required parts."""
    for name in path.split(".")[:-1]:
        inner = spec.get(name.removesuffix(ITEM))
        if name.endswith(ITEM):
            inner = inner or [dict(_ITEMS.get(name.removesuffix(ITEM), {}))]
            spec[name.removesuffix(ITEM)] = inner
            spec = inner[0]
        else:
            spec[name] = inner = inner or dict(_PARENTS.get(name, {}))
            spec = inner


def _walk(spec: Json, path: str) -> tuple[Json, str]:
    """The table with a field, and the field's name in it."""
    *way, name = path.split(".")
    for step in way:
        inner = spec[step.removesuffix(ITEM)]
        spec = inner[0] if step.endswith(ITEM) else inner
    return spec, name


def _value(path: str, node: Json, there: object) -> object:
    steps = path.split(".")
    for key in (".".join(steps[first:]) for first in range(len(steps))):
        if key in VALUES:
            value = VALUES[key]
            return {**there, **value} if isinstance(there, dict) and isinstance(value, dict) else value
    if "enum" in node:
        return next((each for each in node["enum"] if each not in ("", there)), "")
    match node.get("type"):
        case "integer":
            return max(there if isinstance(there, int) else node.get("default", 0), node.get("minimum", 0)) + 1
        case "boolean":
            return not there
        case "array":
            return ["sample"]
    return "sample"


def _change_own(spec: Json, path: str, patch: Json) -> None:
    """Change the section of the component with a field."""
    names = [each.removesuffix(ITEM) for each in path.split(".")]
    *above, name = names[: _NESTED.get(names[0], 1)]
    holder = reduce(lambda tree, each: tree[each], above, spec)
    own = holder[name]
    holder[name] = [_merged(own[0], patch)] if isinstance(own, list) else _merged(own, patch)


def _merged(tree: Json, patch: Json) -> Json:
    """A tree after a merge patch (RFC 7386)."""
    result = {key: value for key, value in tree.items() if patch.get(key, value) is not None}
    for key, value in patch.items():
        if isinstance(value, dict):
            result[key] = _merged(tree.get(key) or {}, value)
        elif value is not None:
            result[key] = value
    return result
