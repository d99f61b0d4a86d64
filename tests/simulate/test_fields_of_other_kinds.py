"""R22: each field of a DMCluster, TidbMonitor, TidbDashboard, TidbNGMonitoring or TidbInitializer shows, or is named.

A field of a running object is set in a sandbox. It shows if an object, a condition or a refusal differs.
Fields of Backups and Restores are in `test_fields_of_backups`: the pods of their Jobs read them.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

import pytest

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
from member.fields.declared import fields_of
from member.fields.ignored import OF_KIND, ignored_by
from simulate.engine.other_kinds import spec_of_kind
from simulate.engine.trees import merged
from simulate.manifests.type_mutants import MutantWorld
from tests.simulate.field_setting import as_text, with_field

MADE = (
    *(STATEFUL_SETS, DEPLOYMENTS, JOBS, SERVICES, INGRESSES, CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, ROLES),
    *(ROLE_BINDINGS, CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES),
)
ONE_OF_EACH: Json = {"master": {"replicas": 1}, "worker": {"replicas": 1}}
SECONDS: Mapping[Resource, float] = {DM_CLUSTERS: 14.0}
"""Seconds until an object is Ready; three for all others."""

OTHER_VALUES: Mapping[str, object] = {
    "configUpdateStrategy": "InPlace",
    "dnsPolicy": "None",
    "imagePullPolicy": "Never",
    "replicas": 2,
    "shards": 2,
    "telemetry": False,
}
"""The value for a field whose usual sample equals its default."""

NEEDS: Mapping[str, Json] = {
    "TidbNGMonitoring.version": {"ngMonitoring": {"version": None}},
    "TidbMonitor.prometheus.config.configMapRef.namespace": {"prometheus": {"config": {"configMapRef": {"name": "a"}}}},
}
"""Further settings that give a field a meaning."""

AT_RUN_TIME = {
    "DMCluster.enablePVReclaim": "claims that a scale-in left behind are deleted",
    "DMCluster.master.maxFailoverCount": "how many lost masters are replaced",
    "DMCluster.worker.maxFailoverCount": "how many lost workers are replaced",
    "DMCluster.worker.recoverFailover": "substitutes go once what was lost is back",
    "DMCluster.worker.failover.recoverByUID": "substitutes of that failover go",
    "TidbInitializer.tlsClientSecretName": "which certificate a cluster with TLS is shown",
}
"""Fields that show only with a loss, a scale-in or TLS of the cluster; each has other tests."""


def base(resource: Resource) -> Json:
    spec = spec_of_kind(resource, "tiny")
    return merged(spec, ONE_OF_EACH) if resource == DM_CLUSTERS else spec


@cache
def world() -> MutantWorld:
    """One world for all tests, with changing objects."""
    return MutantWorld(1)


def outcome(resource: Resource, spec: Json) -> str:
    """The result of a spec as text, without values that differ each time."""
    found = world().outcome_of(resource, spec, MADE, SECONDS.get(resource, 3.0))
    if isinstance(found, str):
        return found
    return as_text(*found)


def silent(resource: Resource, paths: Sequence[str]) -> Iterator[str]:
    """The fields that change nothing and of which nothing is said."""
    for path in paths:
        name = f"{resource.kind}.{path}"
        if name in AT_RUN_TIME:
            continue
        spec = merged(base(resource), NEEDS.get(name, {}))
        if outcome(resource, spec) == outcome(
            resource, with_field(spec, path, fields_of(resource.kind)[path], OTHER_VALUES)
        ):
            yield path


_KEY: Json = {"name": "some-secret", "key": "some-key"}
_OTHER_COMMAND: Json = {"name": "prometheus", "command": ["/bin/prometheus"]}
WAYS_OF_MONITORS: Mapping[str, Json] = {
    "without volumes": {"persistent": False, "storage": None},
    "with its own configuration": {"prometheus": {"config": {"configMapRef": {"name": "prometheus"}}}},
    "with its own rules": {"prometheus": {"config": {"ruleConfigRef": {"name": "rules"}}}},
    "with an alertmanager": {"alertmanagerURL": "alertmanager:9093"},
    "with a retention time": {"prometheus": {"retentionTime": "36h"}},
    "with a command of its own": {"additionalContainers": [_OTHER_COMMAND]},
    "with Secrets": {"grafana": {"usernameSecret": _KEY, "passwordSecret": _KEY}},
    "with variables": {"grafana": {"envs": {"GF_LOG_LEVEL": "warn", "GF_SECURITY_ADMIN_PASSWORD": "x"}}},
    "with Thanos": {"thanos": {"baseImage": "thanos", "version": "v1.0.0", "objectStorageConfigFile": "/a"}},
}


def silent_beside(way: str, paths: Sequence[str]) -> Iterator[str]:
    """The fields that change nothing and are not named, in a way of monitors."""
    common, kind = merged(base(TIDB_MONITORS), WAYS_OF_MONITORS[way]), TIDB_MONITORS.kind
    for path in paths:
        spec = merged(common, NEEDS.get(f"{kind}.{path}", {}))
        changed = with_field(spec, path, fields_of(kind)[path], OTHER_VALUES)
        if any(f"spec.{path}.".startswith(f"{each.field}.") for each in ignored_by(kind, changed)):
            continue
        if outcome(TIDB_MONITORS, spec) == outcome(TIDB_MONITORS, changed):
            yield path


@pytest.mark.slow
@pytest.mark.rule("R22")
def test_some_fields_of_monitors_show_or_are_named_in_every_way() -> None:
    """Each way tries other fields."""
    paths = list(fields_of(TIDB_MONITORS.kind))
    ways = enumerate(WAYS_OF_MONITORS)
    found = {way: list(silent_beside(way, paths[index::50])) for index, way in ways}
    assert {} == {way: wrong for way, wrong in found.items() if wrong}


_EACH = 1 if os.environ.get("FIELDS") == "all" else 4
"""Every which field is set beside other ones; `make simulate` sets all."""


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("way", WAYS_OF_MONITORS)
@pytest.mark.rule("R22")
def test_every_field_of_monitors_shows_or_is_named_in_every_way(way: str) -> None:
    assert [] == list(silent_beside(way, list(fields_of(TIDB_MONITORS.kind))[::_EACH]))


OF_ONE_POD = (TIDB_MONITORS, TIDB_DASHBOARDS, TIDB_NG_MONITORINGS, TIDB_INITIALIZERS)
EVERY_KIND = (*OF_ONE_POD, DM_CLUSTERS)


@pytest.mark.slow
@pytest.mark.parametrize("resource", OF_ONE_POD, ids=lambda each: each.kind)
@pytest.mark.rule("R22")
def test_every_fifth_field_of_other_kinds_has_an_effect_or_is_declared(resource: Resource) -> None:
    assert [] == list(silent(resource, list(fields_of(resource.kind))[::5]))


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("resource", EVERY_KIND, ids=lambda each: each.kind)
@pytest.mark.rule("R22")
def test_every_field_of_other_kinds_has_an_effect_or_is_declared(resource: Resource) -> None:
    assert [] == list(silent(resource, list(fields_of(resource.kind))))


def test_every_declared_path_of_other_kinds_exists() -> None:
    """At a path there is a field, or a table of them."""
    declared = [(kind, path) for kind, table in OF_KIND.items() for path in table]
    assert [] == [
        (kind, path)
        for kind, path in declared
        if not any(f"{each}.".startswith(f"{path}.") for each in fields_of(kind))
    ]


@pytest.mark.slow
def test_reports_a_field_whose_declaration_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OF_KIND, "TidbMonitor", {})
    assert ["grafana.service.port"] == list(silent(TIDB_MONITORS, ["grafana.service.port"]))
