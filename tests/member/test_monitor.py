"""The objects of a monitor, where recordings of v1.6 show nothing (other-resources.md 3.3 to 3.7)."""

from typing import Any

import pytest
import yaml

from apis.decoding import decode
from apis.monitors import OPERATOR_NAMESPACE
from apis.shared import Json
from member.fields.ignored import ignored_by
from member.monitor.configuration import configuration, prometheus_yml, scrape_configs
from member.monitor.naming import Inputs, Target
from member.monitor.objects import everything
from tests.apis.test_monitor_validation import CONTAINERS, monitor, prometheus, write

INPUTS = Inputs(clusters=[Target("ns", "basic", "basic")])
GRAFANA = {"baseImage": "grafana/grafana", "version": "7.5.11"}


def made(annotations: Json | None = None, inputs: Inputs = INPUTS, **spec: Any) -> dict[tuple[str, str], Json]:
    wanted = everything(monitor(annotations, **spec), inputs)
    return {(resource.kind, body["metadata"]["name"]): body for resource, body in wanted}


def pod(**spec: Any) -> Json:
    found: Json = made(**spec)["StatefulSet", "basic-monitor"]["spec"]["template"]["spec"]
    return found


def container(name: str, **spec: Any) -> Json:
    found = pod(**spec)
    (only,) = [each for each in (*found["initContainers"], *found["containers"]) if each["name"] == name]
    return only  # type: ignore[no-any-return]


SPECS: list[Json] = [
    {part: {}} for part in ("nodeSelector", "annotations", "labels", "externalLabels", "podSecurityContext")
]
SPECS += [{part: []} for part in ("tolerations", "additionalContainers", "additionalVolumes", "imagePullSecrets")]
SPECS += [prometheus(**{part: {}}) for part in ("service", "config", "securityContext", "limits", "requests")]
SPECS += [prometheus(config={part: {}}) for part in ("configMapRef", "ruleConfigRef")]
SPECS += [prometheus(ingress={"hosts": []}), prometheus(remoteWrite=[]), {"dm": None}]
SPECS += [write(**{part: {}}) for part in ("tlsConfig", "queueConfig", "metadataConfig", "headers")]
SPECS += [{"thanos": GRAFANA | {"grpcServerTlsConfig": {}}}, {"grafana": GRAFANA | {"service": {}}}]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_part_that_is_empty_raises_nothing(spec: Json) -> None:
    assert ("StatefulSet", "basic-monitor") in made(**spec)


@pytest.mark.rule("other-resources-3.3")
def test_null_values_are_left_out() -> None:
    body: Json = {"metadata": {"name": "basic"}, "spec": {**CONTAINERS, "grafana": None, "dm": None, "clusters": None}}
    assert decode(body, type(monitor())).spec.grafana is None


@pytest.mark.rule("other-resources-3.3")
def test_without_grafana_none_of_its_objects_is_created() -> None:
    names = {name for _, name in made()}
    assert not [name for name in names if "grafana" in name]
    assert ("Secret", "basic-monitor") not in made()


@pytest.mark.parametrize(("prefers", "policies"), [(True, {"PreferDualStack"}), (False, {None})])
@pytest.mark.rule("other-resources-3.4")
def test_preferring_ipv6_makes_every_service_dual_stack(prefers: bool, policies: set[str | None]) -> None:
    services = [tree for (kind, _), tree in made(preferIPv6=prefers, grafana=GRAFANA).items() if kind == "Service"]
    assert 4 == len(services)
    assert policies == {each["spec"].get("ipFamilyPolicy") for each in services}


@pytest.mark.rule("other-resources-3.6")
def test_the_pull_policy_of_the_monitor_holds_where_a_container_has_none() -> None:
    own = CONTAINERS["reloader"] | {"imagePullPolicy": "Never"}
    found = pod(imagePullPolicy="Always", reloader=own)
    policies = {each["name"]: each["imagePullPolicy"] for each in found["containers"] + found["initContainers"]}
    assert {"prometheus": "Always", "reloader": "Never", "monitor-initializer": "Always"} == policies


@pytest.mark.rule("other-resources-3.6")
def test_additional_containers_change_grafana_too() -> None:
    limits = {"resources": {"limits": {"cpu": "2"}}}
    found = container("grafana", grafana=GRAFANA, additionalContainers=[{"name": "grafana"} | limits])
    assert {"cpu": "2"} == found["resources"]["limits"]
    assert "grafana/grafana:7.5.11" == found["image"]


@pytest.mark.rule("other-resources-3.6")
def test_the_log_level_of_grafana_holds() -> None:
    found = container("grafana", grafana=GRAFANA | {"logLevel": "warn"})
    assert {"name": "GF_LOG_LEVEL", "value": "warn"} in found["env"]


@pytest.mark.parametrize(
    ("spec", "retention"),
    [
        ({}, "15d"),
        (prometheus(reserveDays=7), "7d"),
        (prometheus(reserveDays=7, retentionTime="36h"), "36h"),
    ],
)
@pytest.mark.rule("other-resources-3.6")
def test_retention_has_the_requested_length(spec: Json, retention: str) -> None:
    script = container("prometheus", **spec)["command"][2]
    assert f"--storage.tsdb.retention.time={retention}\n" in script.replace(" ", "\n")


@pytest.mark.parametrize(("prefix", "path"), [("/a/~b", "a/~b"), ("", "."), ("/q#1?", "q%231%3F"), ("50%", "50%25")])
@pytest.mark.rule("other-resources-3.6")
def test_thanos_reaches_prometheus_below_a_prefix_with_any_characters(prefix: str, path: str) -> None:
    arguments = container("thanos-sidecar", thanos=GRAFANA | {"routePrefix": prefix})["args"]
    assert f"--prometheus.url=http://localhost:9090/{path}" in arguments


@pytest.mark.rule("other-resources-3.6")
def test_a_token_that_is_not_mounted_automatically_is_mounted_explicitly() -> None:
    found = pod(automountServiceAccountToken=False)
    mounts = container("prometheus", automountServiceAccountToken=False)["volumeMounts"]
    assert "kube-api-access" in [each["name"] for each in found["volumes"]]
    assert "kube-api-access" in [each["name"] for each in mounts]
    assert "kube-api-access" in [
        each["name"] for each in container("prometheus", automountServiceAccountToken=False)["volumeMounts"]
    ]


@pytest.mark.rule("other-resources-3.5")
def test_labels_of_other_instances_and_dots_in_names_are_met() -> None:
    jobs = configuration(monitor(), Inputs(clusters=[Target("ns", "a.b", "other.name")]))["scrape_configs"]
    tikv = next(each for each in jobs if each["job_name"] == "ns-a.b-tikv")
    assert r"other\.name" == tikv["relabel_configs"][0]["regex"]
    assert "$1.a.b-tikv-peer.$3:$4" == tikv["relabel_configs"][4]["replacement"]


@pytest.mark.rule("MON-1")
def test_only_a_cluster_with_full_text_search_has_jobs_for_it() -> None:
    searching = Target("ns", "fts", "fts", beyond_v16=frozenset({"tici-meta", "tici-worker"}))
    alone = [each["job_name"] for each in scrape_configs(INPUTS, 1)]
    both = [each["job_name"] for each in scrape_configs(Inputs(clusters=[*INPUTS.clusters, searching]), 1)]
    assert [] == [name for name in alone if "tici" in name]
    assert ["ns-fts-tici-meta", "ns-fts-tici-worker"] == [name for name in both if "tici" in name]
    assert alone == [name for name in both if name.startswith("ns-basic-")]


@pytest.mark.rule("other-resources-3.7")
def test_an_old_prometheus_gets_no_unknown_setting() -> None:
    endpoint = {"name": "n", "headers": {"a": "b"}, "metadataConfig": {"send": True}, "queueConfig": {"minShards": 2}}
    new = configuration(monitor(**write(**endpoint)), INPUTS)["remote_write"][0]
    assert {"name", "headers", "metadata_config", "queue_config"} <= new.keys()
    spec = write(**endpoint)
    spec["prometheus"]["version"] = "v2.5.0"
    assert {"url", "remote_timeout"} == configuration(monitor(**spec), INPUTS)["remote_write"][0].keys()


def test_the_operator_is_scraped_and_its_alerts_and_dashboard_are_there_on_request() -> None:
    inputs = Inputs(clusters=INPUTS.clusters, operator_rules="groups: []\n", operator_dashboard="{}")
    objects = made({OPERATOR_NAMESPACE: "ns"}, inputs, grafana=GRAFANA)
    assert {"tidb-operator.rules.yml", "tidb-operator.json"} == objects["ConfigMap", "basic-monitor-operator"][
        "data"
    ].keys()
    tree = yaml.safe_load(objects["ConfigMap", "basic-monitor"]["data"]["prometheus.yml"])
    assert "tidb-operator" == tree["scrape_configs"][-1]["job_name"]
    assert ["/prometheus-operator-rules/*.rules.yml"] == tree["rule_files"]
    providers = yaml.safe_load(objects["ConfigMap", "basic-monitor-grafana"]["data"]["dashboards.yaml"])["providers"]
    template = objects["StatefulSet", "basic-monitor"]["spec"]["template"]["spec"]
    mounts = [mount["mountPath"] for each in template["containers"] for mount in each.get("volumeMounts", ())]
    assert {"/prometheus-operator-rules", *(each["options"]["path"] for each in providers)} <= set(mounts)


def test_equal_inputs_give_equal_objects() -> None:
    assert made(grafana=GRAFANA) == made(grafana=GRAFANA)
    assert prometheus_yml(monitor(), INPUTS) == prometheus_yml(monitor(), INPUTS)


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"storage": "1Gi", "storageClassName": "fast"}, {"spec.storage", "spec.storageClassName"}),
        ({"persistent": True, "storage": "1Gi"}, set()),
        ({"prometheus": {"reserveDays": 7, "retentionTime": "36h"}}, {"spec.prometheus.reserveDays"}),
        (
            {"prometheus": {"config": {"commandOptions": ["--log.format=json", "--storage.tsdb.retention=3d"]}}},
            {"spec.prometheus.config.commandOptions[1]"},
        ),
        (
            {"prometheus": {"config": {"configMapRef": {"name": "a"}}}, "externalLabels": {"a": "b"}},
            {"spec.externalLabels"},
        ),
        ({"alertmanagerURL": "a:9093", "enableAlertRules": True}, {"spec.enableAlertRules"}),
        (
            {"prometheus": {"logLevel": "warn"}, "additionalContainers": [{"name": "prometheus", "command": ["a"]}]},
            {"spec.prometheus.logLevel"},
        ),
        (
            {"additionalContainers": [{"name": "beside", "args": ["a"]}, {"name": "prometheus", "args": ["b"]}]},
            {"spec.additionalContainers[1].args"},
        ),
        ({"grafana": {"password": "a", "passwordSecret": {"name": "a", "key": "b"}}}, {"spec.grafana.password"}),
        ({"grafana": {"logLevel": "warn", "envs": {"GF_LOG_LEVEL": "info"}}}, {"spec.grafana.logLevel"}),
        (
            {"thanos": {"tracingConfig": {"name": "a", "key": "b"}, "tracingConfigFile": "/a"}},
            {"spec.thanos.tracingConfig"},
        ),
    ],
)
def test_names_fields_beside_which_another_one_counts(spec: Json, fields: set[str]) -> None:
    assert fields == {each.field for each in ignored_by("TidbMonitor", spec)}


def test_no_message_shows_a_password() -> None:
    spec = {"grafana": {"password": "hidden", "passwordSecret": {"name": "a", "key": "b"}}}
    (problem,) = ignored_by("TidbMonitor", spec)
    assert "hidden" not in str(problem)


@pytest.mark.rule("MON-2")
@pytest.mark.parametrize(
    ("version", "is_strict"),
    [("v3.0.0", True), ("3.1.0", True), ("v3.0.0-rc.1", True), ("v2.49.1", False), ("", False), ("latest", False)],
)
def test_prometheus_3_scrapes_tiflash(version: str, *, is_strict: bool) -> None:
    targets = Inputs(clusters=[Target("ns", "basic", "basic")])
    found = {each["job_name"]: each.get("fallback_scrape_protocol") for each in scrape_configs(targets, 1, "", version)}
    expected = {"ns-basic-tiflash", "ns-basic-tiflash-proxy"} if is_strict else set()
    assert expected == {name for name, protocol in found.items() if protocol == "PrometheusText0.0.4"}
    assert {None, "PrometheusText0.0.4"} >= set(found.values())
