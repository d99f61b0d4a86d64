"""R22: each field of a DMCluster, TidbMonitor, TidbDashboard, TidbNGMonitoring or TidbInitializer shows, or is named.

A field is set in an object that runs, in a sandbox: something is made otherwise, or a condition or refusal differs.
Fields of Backups and Restores are not here: the pods of their Jobs read them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
import pytest

from apis.crd import KINDS, definition
from kube.objects import Json
from kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    DM_CLUSTERS,
    INGRESSES,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_DASHBOARDS,
    TIDB_INITIALIZERS,
    TIDB_MONITORS,
    TIDB_NG_MONITORINGS,
    Resource,
)
from member.fields.ignored import OF_KIND
from member.fields.samples import VALUES
from member.fields.schema import ITEM, leaves
from simulate.engine.other_kinds import spec_of_kind
from simulate.engine.trees import merged
from simulate.manifests.type_mutants import MutantWorld

MADE = (
    *(STATEFUL_SETS, DEPLOYMENTS, JOBS, SERVICES, INGRESSES, CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, ROLES),
    *(ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES),
)
ONE_OF_EACH: Json = {"master": {"replicas": 1}, "worker": {"replicas": 1}}
SECONDS: Mapping[Resource, float] = {DM_CLUSTERS: 14.0}
"""In which an object is Ready; three for all others."""

OTHER_VALUES: Mapping[str, object] = {
    "configUpdateStrategy": "InPlace",
    "dnsPolicy": "None",
    "imagePullPolicy": "Never",
    "replicas": 2,
    "shards": 2,
    "telemetry": False,
}
"""What a field is set to whose usual sample says what is so anyway."""

NEEDS: Mapping[str, Json] = {
    "TidbNGMonitoring.version": {"ngMonitoring": {"version": None}},
    "TidbMonitor.prometheus.config.configMapRef.namespace": {"prometheus": {"config": {"configMapRef": {"name": "a"}}}},
}
"""What else a spec says for a field to mean something."""

AT_RUN_TIME = {
    "DMCluster.enablePVReclaim": "claims that a scale-in left behind are deleted",
    "DMCluster.master.maxFailoverCount": "how many lost masters are replaced",
    "DMCluster.worker.maxFailoverCount": "how many lost workers are replaced",
    "DMCluster.worker.recoverFailover": "substitutes go once what was lost is back",
    "DMCluster.worker.failover.recoverByUID": "substitutes of that failover go",
    "TidbInitializer.tlsClientSecretName": "which certificate a cluster with TLS is shown",
}
"""What shows beside a loss, a scale-in or TLS of the cluster alone; each has tests of its own."""


@cache
def fields_of(resource: Resource) -> Mapping[str, Json]:
    """Each field that has no fields below it, with its schema."""
    (kind,) = (each for each in KINDS if each.name == resource.kind)
    schema = definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return dict(leaves("", schema["properties"]["spec"]))


def base(resource: Resource) -> Json:
    spec = spec_of_kind(resource, "tiny")
    return merged(spec, ONE_OF_EACH) if resource == DM_CLUSTERS else spec


def with_field(spec: Json, path: str, node: Json) -> Json:
    changed: Any = msgspec.json.decode(msgspec.json.encode(spec))
    inner = changed
    *way, last = path.split(".")
    for step in way:
        name = step.removesuffix(ITEM)
        if not inner.get(name):
            inner[name] = [{}] if step.endswith(ITEM) else {}
        inner = inner[name][0] if step.endswith(ITEM) else inner[name]
    inner[last] = sample(path, node, inner.get(last))
    result: Json = changed
    return result


def sample(path: str, node: Json, there: object) -> object:
    """Another value than the one that is there."""
    steps = path.split(".")
    for values in (OTHER_VALUES, VALUES):
        for key in (".".join(steps[first:]) for first in range(len(steps))):
            if key in values and values[key] != there:
                return values[key]
    if "enum" in node:
        return next(each for each in node["enum"] if each not in ("", there))
    number = max(there if isinstance(there, int) else node.get("default", 0), node.get("minimum", 0)) + 1
    by_type = {"integer": number, "boolean": not there, "array": ["sample"], "object": {"sample": "on"}}
    return by_type.get(node.get("type", ""), f"{there or ''}sample")


@cache
def world() -> MutantWorld:
    """One world for all: objects come and go."""
    return MutantWorld(1)


def outcome(resource: Resource, spec: Json) -> str:
    """What comes of a spec, as text, without what differs each time."""
    found = world().outcome_of(resource, spec, MADE, SECONDS.get(resource, 3.0))
    if isinstance(found, str):
        return found
    objects, conditions = found
    kept = [{key: value for key, value in each.items() if key != "status"} for each in objects]
    told = [[each.get(key) for key in ("type", "status", "reason", "message")] for each in conditions]
    for each in kept:
        meta = each["metadata"]
        annotations = {key: value for key, value in (meta.get("annotations") or {}).items() if key not in NOTES}
        each["metadata"] = {"labels": meta.get("labels"), "annotations": annotations}
    text = msgspec.json.encode([kept, told], order="sorted").decode()
    return re.sub(CHANGING, "", text)


NOTES = ("tidb.pingcap.com/written-for", "pingcap.com/last-applied-configuration")
"""What the operator notes of a spec for itself."""
CHANGING = (
    r'"uid":"[^"]*"|"clusterIPs?":("[^"]*"|\[[^\]]*\])|"nodePort":\d+|\d{4}-\d\d-\d\dT[^"]*|"resourceVersion":"\d+"'
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{7,64}|\b\d{10,}\b"
)


def silent(resource: Resource, paths: Sequence[str]) -> Iterator[str]:
    """The fields that change nothing and of which nothing is said."""
    for path in paths:
        name = f"{resource.kind}.{path}"
        if name in AT_RUN_TIME:
            continue
        spec = merged(base(resource), NEEDS.get(name, {}))
        if outcome(resource, spec) == outcome(resource, with_field(spec, path, fields_of(resource)[path])):
            yield path


OF_ONE_POD = (TIDB_MONITORS, TIDB_DASHBOARDS, TIDB_NG_MONITORINGS, TIDB_INITIALIZERS)


@pytest.mark.slow
@pytest.mark.parametrize("resource", OF_ONE_POD, ids=lambda each: each.kind)
@pytest.mark.rule("R22")
def test_every_fifth_field_of_other_kinds_has_an_effect_or_is_declared(resource: Resource) -> None:
    assert [] == list(silent(resource, list(fields_of(resource))[::5]))


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("resource", [*OF_ONE_POD, DM_CLUSTERS], ids=lambda each: each.kind)
@pytest.mark.rule("R22")
def test_every_field_of_other_kinds_has_an_effect_or_is_declared(resource: Resource) -> None:
    assert [] == list(silent(resource, list(fields_of(resource))))


def test_every_declared_path_of_other_kinds_exists() -> None:
    """At a path there is a field, or a table of them."""
    resources = {each.kind: each for each in (*OF_ONE_POD, DM_CLUSTERS)}
    declared = [(kind, path) for kind, table in OF_KIND.items() for path in table]
    assert [] == [
        (kind, path)
        for kind, path in declared
        if not any(f"{each}.".startswith(f"{path}.") for each in fields_of(resources[kind]))
    ]


@pytest.mark.slow
def test_reports_a_field_whose_declaration_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OF_KIND, "TidbMonitor", {})
    assert ["grafana.service.port"] == list(silent(TIDB_MONITORS, ["grafana.service.port"]))
