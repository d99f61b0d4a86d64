"""Every field of every component: set, and unset a minute later (reliability.md R22).

`field/tikv.dataSubDir` sets that field. A rejection by the API server or the operator is reported and changes nothing.
An accepted field must vanish when it is unset: the end is compared with a cluster that never had it (O6).
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache

from kube.objects import Json
from simulate.engine.plan import InvalidPlan, Plan
from simulate.engine.trees import merged
from simulate.families.family import Family
from simulate.families.homes import all_components, fields_of, home_of
from simulate.families.users_data import of_all_components

_UNSET_AT = 60.0
_BUDGET = 420.0

_CONTAINER = {"name": "beside", "image": "busybox:1"}

_VALUES: Mapping[str, object] = {
    "additionalContainers": [_CONTAINER],
    "additionalPorts": [{"name": "more", "port": 9999}],
    "additionalVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    "additionalVolumes": [{"name": "scratch", "emptyDir": {}}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "args": ["--version"],
    "arguments": ["--log-slow-query=/tmp/slow"],
    "baseImage": "mirror/image",
    "config": {"log": {"level": "warn"}},
    "configUpdateStrategy": "InPlace",
    "dnsConfig": {"searches": ["example.com"]},
    "dnsPolicy": "Default",
    "env": [{"name": "COLOR", "value": "blue"}],
    "envFrom": [{"configMapRef": {"name": "no-such-map", "optional": True}}],
    "evictLeaderTimeout": "3m",
    "exposeStatus": False,
    "externalTrafficPolicy": "Local",
    "image": "mirror/image:v8.5.2",
    "imagePullPolicy": "Always",
    "imagePullSecrets": [{"name": "registry"}],
    "initContainers": [_CONTAINER],
    "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
    "limits": {"cpu": "2"},
    "loadBalancerSourceRanges": ["10.0.0.0/8"],
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "podManagementPolicy": "OrderedReady",
    "podSecurityContext": {"fsGroup": 1000},
    "requests": {"cpu": "1"},
    "securityContext": {"runAsGroup": 1000},
    "separateSlowLog": False,
    "statefulSetUpdateStrategy": "OnDelete",
    "storageVolumes": [{"name": "more", "storageSize": "1Gi", "mountPath": "/more"}],
    "tolerations": [{"key": "dedicated", "operator": "Exists"}],
    "topologySpreadConstraints": [{"topologyKey": "kubernetes.io/hostname"}],
    "type": "NodePort",
    "version": "v8.5.3",
    "waitLeaderTransferBackTimeout": "3m",
}
"""The values of fields by name; others follow from the type."""

_SCRATCH: Json = {
    "additionalVolumes": [{"name": "swept", "emptyDir": {}}],
    "additionalVolumeMounts": [{"name": "swept", "mountPath": "/swept"}],
}
_BESIDE: Mapping[str, Json] = {
    "tikv.logTailer.*": {"separateRocksDBLog": True},
    "tikv.raftLogVolumeName": {"separateRaftLog": True} | _SCRATCH,
    "tikv.rocksDBLogVolumeName": {"separateRocksDBLog": True} | _SCRATCH,
    "tidb.customizedStartupProbe.*": {"customizedStartupProbe": {"image": "busybox:1", "binaryName": "probe"}},
    "tidb.service.loadBalancer*": {"service": {"type": "LoadBalancer"}},
    "tidb.slowLogVolumeName": _SCRATCH,
}
"""The prerequisites of fields, by globs of paths."""


def _plan(path: str) -> Plan:
    """The plan called `field/<path>`. Raises InvalidPlan."""
    if path not in values():
        raise InvalidPlan(f"{path!r} is no field of {', '.join(all_components())}, such as `tikv.dataSubDir`")
    component, _, inner = path.partition(".")
    change = at(inner, values()[path])
    for glob, beside in _BESIDE.items():
        if fnmatchcase(path, glob):
            change = merged(beside, change)
    home = home_of(component)
    first, begins = home.section, home.begins_at
    then = merged(first, change)
    edits = home.replace(begins + 1.0, first, then), home.replace(begins + _UNSET_AT, then, first)
    return Plan(
        name=f"{FAMILY.name}/{path}",
        cluster=home.cluster,
        budget=begins + _BUDGET,
        edits=(*home.made, *edits),
        given=of_all_components(home.cluster),
        reference=False,
    )


def _plans() -> Iterator[Plan]:
    """One plan for each value of each field."""
    return map(_plan, values())


@cache
def values() -> Mapping[str, object]:
    """The value of each field, by path."""
    return {
        f"{component}.{path}": _value(f"{component}.{path}", node)
        for component in all_components()
        for path, node in fields_of(component)
    }


def _value(path: str, node: Json) -> object:
    there, name = before(path), path.rpartition(".")[2]
    if "enum" in node:
        return next(each for each in node["enum"] if each not in ("", there))
    return _VALUES[name] if name in _VALUES else _of_type(node, there)


def _of_type(node: Json, there: object) -> object:
    match node.get("type"):
        case "integer":
            return max(there if isinstance(there, int) else node.get("default", 0), node.get("minimum", 0)) + 1
        case "boolean":
            return True
        case "array":
            return ["swept"] if node["items"].get("type") == "string" else [{}]
        case "object":
            return {"swept": "on"} if "additionalProperties" in node else {}
    return "swept"


def before(path: str) -> object:
    """The initial value of a component's field, or None."""
    component, *names = path.split(".")
    value: object = home_of(component).section
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def at(path: str, value: object) -> Json:
    """A tree with a value at a path."""
    outer, _, name = path.rpartition(".")
    return at(outer, {name: value}) if outer else {name: value}


FAMILY = Family("field", _plan, _plans)
