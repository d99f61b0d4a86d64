"""Every field of every component with a second spelling: written in one, then in the other (R22).

`same/tikv.env` sets variables, and later the same ones in another order. The second edit must write only the status
(O3), and restart no pod.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain

import msgspec

from apis import toml
from kube.objects import Json
from sandbox.apiserver.defaults import pod_spec
from simulate.engine.components import profile
from simulate.engine.plan import InvalidPlan, Plan
from simulate.engine.trees import merged
from simulate.families import fields
from simulate.families.family import Family
from simulate.families.homes import all_components, fields_of, home_of
from simulate.families.users_data import of_all_components

_SPELT_ANEW = 240.0
_BUDGET = 330.0

_OLD: Json = {"key": "old", "operator": "DoesNotExist"}
_DISKS = ["ssd", "nvme"]
_VARIABLES: list[Json] = [{"name": "COLOR", "value": "blue"}, {"name": "SIZE", "value": "9"}]
_TOLERATIONS: list[Json] = [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]
_SPREAD: list[Json] = [{"topologyKey": "kubernetes.io/hostname"}, {"topologyKey": "topology.kubernetes.io/zone"}]
_VOLUMES: list[Json] = [{"name": "one", "emptyDir": {}}, {"name": "two", "emptyDir": {"sizeLimit": "1Gi"}}]
_MOUNTS: list[Json] = [{"name": "one", "mountPath": "/one"}, {"name": "two", "mountPath": "/two"}]
_PLAIN = {"cpu": "500m", "memory": "1Gi"}
_OTHERWISE = {"cpu": "0.5", "memory": "1073741824"}


def _affinity(terms: list[Json]) -> Json:
    preferred = {"weight": 1, "preference": {"matchExpressions": terms}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}}


def _container(variables: list[Json], requests: Mapping[str, str]) -> list[Json]:
    return [{"name": "beside", "image": "busybox:1", "env": variables, "resources": {"requests": requests}}]


_NAME: Json = {"fieldRef": {"fieldPath": "metadata.name"}}
_TRUE: Json = {"exec": {"command": ["true"]}}
_DEFAULTED: Json = {
    "image": "busybox",
    "env": [{"name": "NAME", "valueFrom": _NAME}],
    "ports": [{"containerPort": 9999}],
    "resources": {"limits": {"cpu": "1"}},
}
_IN_POD: Json = {
    "initContainers": [{"name": "first", **_DEFAULTED}],
    "containers": [{"name": "beside", "livenessProbe": _TRUE, "startupProbe": _TRUE, **_DEFAULTED}],
    "volumes": [
        {"name": "empty"},
        {"name": "host", "hostPath": {"path": "/data"}},
        {"name": "name", "downwardAPI": {"items": [{"path": "name", **_NAME}]}},
        {"name": "texts", "configMap": {"name": "texts", "optional": True}},
        {"name": "keys", "secret": {"secretName": "keys", "optional": True}},
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
    ],
}
"""A user's additions to a pod in which the API server sets defaults."""


_BY_API_SERVER = ("dnsPolicy", "schedulerName", "terminationGracePeriodSeconds")
"""Fields of a component that are fields of its pods."""


def _with_defaults() -> Json:
    """The additions as the API server stores them, with its other defaults for a component's pods."""
    pod = msgspec.json.decode(msgspec.json.encode(_IN_POD))
    pod_spec(pod)
    settings = {key: pod[key] for key in _BY_API_SERVER}
    return _additions(pod) | settings | {"hostNetwork": False, "imagePullPolicy": "IfNotPresent"}


def _additions(pod: Json) -> Json:
    return {
        "initContainers": pod["initContainers"],
        "additionalContainers": pod["containers"],
        "additionalVolumes": pod["volumes"],
    }


Spellings = tuple[Json, Json]
"""The first and the second value that are merged into a component's section."""

_BY_FIELD: Mapping[str, Spellings] = {
    "additionalContainers": (
        {"additionalContainers": _container(_VARIABLES, _PLAIN)},
        {"additionalContainers": _container(_VARIABLES[::-1], _OTHERWISE)},
    ),
    "additionalContainers (defaults)": (_additions(_IN_POD), _with_defaults()),
    "additionalVolumeMounts": (
        {"additionalVolumes": _VOLUMES, "additionalVolumeMounts": _MOUNTS},
        {"additionalVolumes": _VOLUMES, "additionalVolumeMounts": _MOUNTS[::-1]},
    ),
    "additionalVolumes": (
        {"additionalVolumes": _VOLUMES},
        {"additionalVolumes": [{"name": "two", "emptyDir": {"sizeLimit": "1024Mi"}}, _VOLUMES[0]]},
    ),
    "affinity": (
        {"affinity": _affinity([_OLD, {"key": "disk", "operator": "In", "values": _DISKS}])},
        {"affinity": _affinity([{"key": "disk", "operator": "In", "values": _DISKS[::-1]}, _OLD])},
    ),
    "env": ({"env": _VARIABLES}, {"env": _VARIABLES[::-1]}),
    "imagePullSecrets": (
        {"imagePullSecrets": [{"name": "a"}, {"name": "b"}]},
        {"imagePullSecrets": [{"name": "b"}, {"name": "a"}]},
    ),
    "initContainers": (
        {"initContainers": _container(_VARIABLES, _PLAIN)},
        {"initContainers": _container(_VARIABLES[::-1], _OTHERWISE)},
    ),
    "limits": ({"limits": {"cpu": "2", "memory": "2Gi"}}, {"limits": {"cpu": "2000m", "memory": "2048Mi"}}),
    "podSecurityContext": (
        {"podSecurityContext": {"fsGroup": 1000, "supplementalGroups": [1, 2]}},
        {"podSecurityContext": {"supplementalGroups": [2, 1], "fsGroup": 1000}},
    ),
    "requests": ({"requests": _PLAIN}, {"requests": _OTHERWISE}),
    "securityContext": (
        {"securityContext": {"capabilities": {"add": ["SYS_PTRACE", "NET_ADMIN"]}}},
        {"securityContext": {"capabilities": {"add": ["NET_ADMIN", "SYS_PTRACE"]}}},
    ),
    "tolerations": ({"tolerations": _TOLERATIONS}, {"tolerations": _TOLERATIONS[::-1]}),
    "topologySpreadConstraints": ({"topologySpreadConstraints": _SPREAD}, {"topologySpreadConstraints": _SPREAD[::-1]}),
    "version": ({}, {"version": "v8.5.2"}),
}
"""The two spellings of each field, by name."""

_OF_VOLUMES: Mapping[str, Spellings] = {
    "requests.storage (notation)": ({"requests": {"storage": "1Gi"}}, {"requests": {"storage": "1024Mi"}}),
    "requests.storage (bytes)": ({"requests": {"storage": "1Gi"}}, {"requests": {"storage": "1073741824"}}),
    "requests.storage (rounded up)": ({"requests": {"storage": "1500Mi"}}, {"requests": {"storage": "1536000Ki"}}),
}
"""For components with data; a provisioner rounds up."""


def _of_config(component: str) -> Mapping[str, Spellings]:
    """The configuration as a tree and as a text; for several files, the first one."""
    config = profile(component).config("warn")
    has_several = "config" in config
    tree: Json = config["config"] if has_several else config
    text = toml.dumps(tree)
    by_name: Mapping[str, tuple[object, object]] = {
        "config (text)": (tree, text),
        "config (object)": (text, tree),
        "config (layout)": (text, f"# as it was\n{text.replace(chr(34), chr(39))}"),
        "config (empty table)": (tree, tree | {"x": {}}),
        "config (empty text)": ({}, ""),
        "config (number)": ("x.limit = 1000", "x.limit = 1_000"),
        "config (duration)": ("x.interval = '90s'", "x.interval = '1m30s'"),
        "config (size)": ("x.size = '1GB'", "x.size = '1024MiB'"),
    }

    def spelt(value: object) -> Json:
        return {"config": {"config": value} if has_several else value}

    found = {name: (spelt(first), spelt(then)) for name, (first, then) in by_name.items()}
    if home_of(component).section.get("config"):
        # its initial value is not empty
        del found["config (empty text)"]
    return found


_ALONE: Mapping[str, Spellings] = {
    "pd.config (schedule)": (
        {"config": {}},
        {"config": "[schedule]\n[replication]\n"},
    ),
    "tidb.service.loadBalancerSourceRanges": (
        {"service": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8", "172.16.0.0/12"]}},
        {"service": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["172.16.0.0/12", "10.0.0.0/8"]}},
    ),
}

_SAYS_SOMETHING = (
    "*.imagePullPolicy",
    "*.storageClassName",
    "*.version",
    "*.failover.*",
    "*.logTailer.*",
    "*.slowLogTailer.*",
    "tidb.customizedStartupProbe.*",
)
"""Fields whose empty text is a value, or whose presence in a table is significant, by globs."""

_EMPTY: Mapping[type, object] = {list: [], dict: {}, str: ""}


def _plan(rest: str) -> Plan:
    """The plan called `same/<rest>`. Raises InvalidPlan."""
    known = _spellings()
    if rest not in known:
        raise InvalidPlan(f"{rest!r} has no second spelling; these have: {', '.join(known)}")
    home = home_of(rest.partition(".")[0])
    start, begins = home.section, home.begins_at
    first, then = (merged(start, spelt) for spelt in known[rest])
    edits = [home.replace(begins + _SPELT_ANEW + 1.0, first, then)]
    if first != start:
        edits.insert(0, home.replace(begins + 1.0, start, first))
    return Plan(
        name=f"{FAMILY.name}/{rest}",
        cluster=home.cluster,
        budget=begins + _BUDGET,
        silent_after=begins + _SPELT_ANEW,
        edits=(*home.made, *edits),
        given=of_all_components(home.cluster),
        reference=False,
    )


def _plans() -> Iterator[Plan]:
    """One plan for each change of a spelling."""
    return map(_plan, _spellings())


@cache
def _spellings() -> Mapping[str, Spellings]:
    """The first value of a component's section and its later replacement."""
    return dict(_spelt_twice()) | {f"{path} (empty)": ({}, empty) for path, empty in _empty()}


def _spelt_twice() -> Iterator[tuple[str, Spellings]]:
    for component in all_components():
        start, known = home_of(component).section, {path.partition(".")[0] for path, _ in fields_of(component)}
        tables = [_BY_FIELD, _of_config(component), *([_OF_VOLUMES] if "requests" in start else [])]
        for name, spellings in chain.from_iterable(table.items() for table in tables):
            # a component with its own version does not have the cluster's
            is_other = name == "version" and name in start
            if name.partition(" ")[0].partition(".")[0] in known and not is_other:
                yield f"{component}.{name}", spellings
    yield from _ALONE.items()


def _empty() -> Iterator[tuple[str, Json]]:
    """Every initially absent field, as an empty list, table or text."""
    for path, value in fields.values().items():
        says_something = any(fnmatchcase(path, glob) for glob in _SAYS_SOMETHING)
        if type(value) in _EMPTY and not says_something and fields.before(path) is None:
            yield path, fields.at(path.partition(".")[2], _EMPTY[type(value)])


FAMILY = Family("same", _plan, _plans)
