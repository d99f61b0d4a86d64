"""Fields that can no longer change, judged by what runs (defaults-and-validation.md 4)."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from apis.accessor import find
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.identity import tls_enabled
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from apis.validation import Running, immutability, observe
from apis.validation.changes import without_effect
from tests.apis.clusters import cluster, golden, golden_clusters, minimal

RUNNING = Running(
    instance="basic",
    images={name: f"pingcap/{name}:v8.5.2" for name in ("pd", "tikv", "tidb")},
    configs={"pd": {"schedule": {"leader-schedule-limit": 4}}, "tikv": {"log": {"level": "warn"}}, "tidb": {}},
)
KEPT: Json = {"pd": {"config": {"schedule": {"leader-schedule-limit": 4}}}, "tikv": {"config": "[log]\nlevel='warn'"}}


def fields(spec: Json, running: Running = RUNNING, **metadata: Any) -> list[str]:
    return [problem.field for problem in immutability(cluster(spec, **metadata), running)]


def observed(cluster_name: str, namespace: str, file: str) -> Running:
    """The values that the StatefulSets and ConfigMaps of a recorded cluster show."""
    objects: dict[str, dict[str, Json]] = defaultdict(dict)
    for name, item in golden():
        if name == file and item["metadata"].get("namespace") == namespace:
            objects[item["kind"]][item["metadata"]["name"]] = item
    sets = {
        component: objects["StatefulSet"][f"{cluster_name}-{component}"]
        for component in ("pd", "tikv", "tidb", "tiflash")
        if f"{cluster_name}-{component}" in objects["StatefulSet"]
    }
    texts = {}
    for component, stateful_set in sets.items():
        for volume in stateful_set["spec"]["template"]["spec"]["volumes"]:
            data = objects["ConfigMap"].get(volume.get("configMap", {}).get("name"), {}).get("data", {})
            if "config-file" in data:
                texts[component] = data["config-file"]
    return observe(sets, texts)


@pytest.mark.parametrize(("name", "item"), golden_clusters())
def test_accepts_running_clusters_recorded_from_v1_6(name: str, item: Json) -> None:
    file, cluster_name = name.split("/")
    running = observed(cluster_name, item["metadata"]["namespace"], file)
    assert cluster_name == running.instance
    tc = with_defaults(decode(item, TidbCluster))
    present = {name for name in ("tikv", "tidb") if (found := find(tc, name)) and not found.suspended}
    assert present <= running.configs.keys()
    assert all(running.images[name].startswith(f"pingcap/{name}:") for name in present)
    assert bool(running.pd_tls) == (tls_enabled(tc) and tc.spec.pd is not None)
    assert [] == immutability(tc, running)


def test_accepts_an_unchanged_running_cluster() -> None:
    assert [] == fields(minimal(**KEPT))


def test_the_instance_label_must_match_the_running_selectors() -> None:
    label = {"app.kubernetes.io/instance": "other"}
    field = 'metadata.labels["app.kubernetes.io/instance"]'
    assert [field] == fields(minimal(**KEPT), labels=label)
    assert [field] == fields(minimal(**KEPT), replace(RUNNING, instance="other"))
    assert [] == fields(minimal(**KEPT), replace(RUNNING, instance="other"), labels=label)


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.rule("R25")
def test_tls_may_change_only_while_a_single_pd_runs(wanted: bool) -> None:
    spec, known = minimal(tlsCluster={"enabled": wanted}, **KEPT), {"clusterID": "7"}
    other = replace(RUNNING, pd_replicas=3, pd_tls=not wanted)

    def problems(running: Running, status: Json) -> list[str]:
        return [problem.field for problem in immutability(cluster(spec, status=status), running)]

    assert ["spec.tlsCluster.enabled"] == problems(other, known)
    assert [] == problems(replace(other, pd_tls=wanted), known)
    assert [] == problems(replace(other, pd_replicas=1), known)
    assert [] == problems(other, {}), "a PD that never served may be put right"
    several = {"tikv": {"spec": {"replicas": 2}}}
    assert ["spec.tlsCluster.enabled"] == problems(replace(other, pd_replicas=1, stateful_sets=several), known)
    assert ["spec.tlsCluster.enabled"] == problems(replace(other, images={}), known), "PD is suspended"
    assert [] == problems(replace(other, images={}, pd_tls=None), known)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"schedule": {"leader-schedule-limit": 8}}, ["schedule"]),
        ({}, ["schedule"]),
        ({"schedule": {"leader-schedule-limit": 4}, "replication": {"max-replicas": 5}}, ["replication"]),
        ({"schedule": {"leader-schedule-limit": 4}, "replication": {}, "log": {"level": "info"}}, []),
        ("[schedule]\nleader-schedule-limit = 4 # the same\n", []),
        ({"schedule": {"leader-schedule-limit": 4, "max-store-preparing-time": "48h"}}, []),
        ({"schedule": {"leader-schedule-limit": 4}, "replication": {"location-labels": [], "new": 1}}, []),
        ({"schedule": {"max-store-preparing-time": "48h"}}, ["schedule"]),
        ({"schedule": {"leader-schedule-limit": 4, "region-schedule-limit": 8}}, ["schedule"]),
        ({"schedule": {"leader-schedule-limit": 4}, "replication": {"location-labels": ["zone"]}}, ["replication"]),
        ("[schedule]\nleader-schedule-limit = 4\nmax-store-preparing-time = '48h'\n", ["schedule"]),
        ({"schedule": 5}, ["schedule"]),
        ("not toml", []),
    ],
)
def test_refuses_scheduling_settings_that_must_be_changed_through_pd(written: Json | str, expected: list[str]) -> None:
    found = fields(minimal(**{**KEPT, "pd": {"config": written}}))
    assert [f"spec.pd.config.{section}" for section in expected] == found


@pytest.mark.rule("defaults-and-validation-7")
def test_a_setting_that_v1_6_dropped_counts_once_it_is_in_the_running_file() -> None:
    """v1.6 has dropped keys unknown to its schema: a manifest that is applied again restores them."""
    new = {"max-store-preparing-time": "48h"}
    written: Json = {"schedule": {"leader-schedule-limit": 4} | new}
    tc = cluster(minimal(**{**KEPT, "pd": {"config": written}}))
    assert ["spec.pd.config.schedule.max-store-preparing-time"] == without_effect(tc, RUNNING)
    running = replace(RUNNING, configs={**RUNNING.configs, "pd": written})
    assert [] == without_effect(tc, running)
    other: Json = {"schedule": written["schedule"] | {"max-store-preparing-time": "24h"}}
    assert ["spec.pd.config.schedule"] == fields(minimal(**{**KEPT, "pd": {"config": other}}), running)


@pytest.mark.parametrize(("names", "expected"), [(["a"], 0), (["a", "b"], 1), (["x", "y"], 0)])
def test_refuses_a_second_allowed_name_unless_pd_already_runs_with_it(names: list[str], expected: int) -> None:
    running = replace(RUNNING, configs={"pd": {"security": {"cert-allowed-cn": ["x", "y"]}}})
    found = fields(minimal(pd={"config": {"security": {"cert-allowed-cn": names}}}), running)
    assert ["spec.pd.config.security.cert-allowed-cn"] * expected == found


@pytest.mark.parametrize(
    ("in_use", "wanted", "refused"), [("", "b", True), ("a", "b", True), ("a", "a", False), ("a", None, False)]
)
def test_bootstrap_sql_may_only_be_removed(in_use: str, wanted: str | None, refused: bool) -> None:
    spec = minimal(**KEPT, tidb={"bootstrapSQLConfigMapName": wanted})
    expected = ["spec.tidb.bootstrapSQLConfigMapName"] if refused else []
    assert expected == fields(spec, replace(RUNNING, bootstrap_sql=in_use))


def test_bootstrap_sql_may_be_set_before_tidb_runs() -> None:
    spec = minimal(**KEPT, tidb={"bootstrapSQLConfigMapName": "a"})
    images = {name: image for name, image in RUNNING.images.items() if name != "tidb"}
    assert [] == fields(spec, replace(RUNNING, images=images))


def test_the_version_may_move_to_the_components_but_not_vanish() -> None:
    assert ["spec.version"] * 3 == fields({**minimal(**KEPT), "version": ""})
    moved = {name: {**KEPT.get(name, {}), "version": "v8.5.2"} for name in ("pd", "tikv", "tidb")}
    assert [] == fields({**minimal(**moved), "version": ""})
    assert ["spec.tidb.version"] == fields(minimal(**KEPT, tidb={"version": ""}))


def test_a_base_image_may_vanish_only_if_the_deprecated_image_replaces_it() -> None:
    emptied = {"baseImage": "", "image": "pingcap/pd:v8.5.2"}
    spec = minimal(**{**KEPT, "pd": {**KEPT["pd"], **emptied}})
    versioned = {name: {**part, "version": "v8.5.2"} for name, part in spec.items() if name in ("tikv", "tidb")}
    assert [] == fields({**spec, **versioned, "version": ""})
    for image, problems in {
        "pingcap/pd:v9": [],
        "pingcap/pd@sha256:" + "0" * 64: [],
        "pingcap/pd": ["spec.pd.image"],
        "": ["spec.pd.baseImage"],
    }.items():
        spec["pd"]["image"] = image
        assert problems == fields({**spec, **versioned, "version": ""})


def test_refuses_to_remove_a_configuration_with_user_settings() -> None:
    spec = minimal(**KEPT, tidb={"config": None})
    assert [] == fields(spec)
    by_the_operator = {"log": {"file": {"max-backups": 3}}, "security": {"cluster-ssl-ca": "x"}}
    assert [] == fields(spec, replace(RUNNING, configs={**RUNNING.configs, "tidb": by_the_operator}))
    by_the_user = {**by_the_operator, "performance": {"max-procs": 2}}
    running = replace(RUNNING, configs={**RUNNING.configs, "tidb": by_the_user})
    assert ["spec.tidb.config"] == fields(spec, running)
    assert [] == fields(minimal(**KEPT, tidb={"config": {}}), running)


def test_ignores_a_running_configuration_that_is_not_toml() -> None:
    assert {"tikv": {}} == observe({}, {"pd": "= 1", "tikv": ""}).configs


def test_observation_finds_instance_images_and_bootstrap_sql() -> None:
    pod = {
        "containers": [{"name": "slowlog", "image": "helper"}, {"name": "tidb", "image": "tidb:v1"}],
        "volumes": [{"name": "config"}, {"name": "tidb-bootstrap-sql", "configMap": {"name": "first"}}],
    }
    selector = {"matchLabels": {"app.kubernetes.io/instance": "legacy"}}
    found = observe({"tidb": {"spec": {"selector": selector, "template": {"spec": pod}}}}, {})
    assert Running("legacy", {"tidb": "tidb:v1"}, {}, "first") == found


NOTHING = Running()
IMAGES: Json = {name: {"image": f"pingcap/{name}:v6.5.0"} for name in ("pd", "tikv", "tidb")}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (minimal(), []),
        ({**minimal(), "version": ""}, ["spec.version"] * 3),
        (minimal(tikv={"image": "pingcap/tikv:v1"}), []),
        ({**minimal(**IMAGES), "version": ""}, []),
        ({**minimal(**IMAGES | {"tidb": {"image": "pingcap/tidb"}}), "version": ""}, ["spec.tidb.image"]),
        (
            {**minimal(pd={"baseImage": ""}, tikv={"version": "v1"}, tidb={"version": "v1"}), "version": ""},
            ["spec.pd.baseImage"],
        ),
        (minimal(pd={"version": ""}), ["spec.pd.version"]),
        ({**minimal(pd={"baseImage": "r:5/pd:v1"}, tikv={"version": "v1"}, tidb={"version": "v1"}), "version": ""}, []),
        ({"tiflash": {"replicas": 1, "storageClaims": [], "image": "x"}}, ["spec.tiflash.image"]),
    ],
)
def test_a_new_cluster_needs_a_version_and_an_image(spec: Json, expected: list[str]) -> None:
    assert expected == fields(spec, NOTHING)


def test_creation_rules_do_not_apply_to_existing_clusters() -> None:
    spec = {**minimal(), "version": ""}
    assert [] == immutability(cluster(spec, status={"clusterID": "7"}), NOTHING)


@pytest.mark.parametrize(
    ("expected", "wanted", "domains", "cluster_id"),
    [
        ([], "a.local", {"a.local"}, "7"),
        (["spec.clusterDomain"], "b.local", {"a.local"}, "7"),
        (["spec.clusterDomain"], "", {"a.local"}, "7"),
        (["spec.clusterDomain"], "a.local", {""}, "7"),
        ([], "a.local", {"", "a.local"}, "7"),
        ([], "b.local", {"a.local"}, ""),
        ([], "b.local", set(), "7"),
    ],
)
@pytest.mark.rule("4.1")
def test_the_domain_may_not_change_after_pd_is_bootstrapped(
    expected: list[str], wanted: str, domains: set[str], cluster_id: str
) -> None:
    tc = cluster({"clusterDomain": wanted})
    tc.status.cluster_id = cluster_id
    for images in ({}, {"pd": "pingcap/pd:v8.5.2"}):
        problems = immutability(tc, Running(images=images, domains=frozenset(domains)))
        assert expected == [each.field for each in problems if each.field == "spec.clusterDomain"]
