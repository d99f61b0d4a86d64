"""Prometheus and Grafana accept the generated configuration (other-resources.md 3.5, 3.6, 3.7)."""

import json
import subprocess
from pathlib import Path

import pytest

from apis.monitors import OPERATOR_NAMESPACE, TidbMonitor
from controllers.tidbmonitor import provisions
from kube.objects import Json
from member.monitor.naming import Inputs, Target
from member.monitor.objects import everything
from tests.apis.test_monitor_validation import CONTAINERS, monitor, prometheus
from tests.certificates import Authority
from tests.monitoring.conftest import built
from tests.monitoring.generated import moved, rendered

INPUTS = Inputs(
    clusters=[Target("ns", "plain", "plain"), Target("other", "safe.1", "safe.1", "safe.1-cluster-client-secret")],
    dm_clusters=[Target("ns", "sync", "sync", "sync-dm-client-secret")],
    users={("mimir", "user"): "ada"},
    operator_rules=provisions.rules(),
    operator_dashboard=provisions.dashboard(),
)
KEY = {"name": "mimir", "key": "user"}
ENDPOINT: Json = {
    "url": "http://mimir.example.com/api/v1/push",
    "name": "mimir",
    "remoteTimeout": "45s",
    "headers": {"X-Scope-OrgID": "lab"},
    "basicAuth": {"username": KEY, "password": KEY},
    "tlsConfig": {"ca": {"secret": KEY}, "serverName": "mimir"},
    "proxyUrl": "http://proxy:8080",
    "queueConfig": {"capacity": 5000, "minShards": 1, "maxShards": 20, "minBackoff": 1, "maxBackoff": 100000000},
    "metadataConfig": {"send": True, "sendInterval": "2m"},
    "writeRelabelConfigs": [
        {"sourceLabels": ["__name__"], "regex": "go_.*", "action": "drop"},
        {"sourceLabels": ["instance"], "targetLabel": "__tmp", "modulus": 8, "action": "hashmod"},
    ],
}
DM = {"clusters": [{"name": "sync"}], "initializer": CONTAINERS["initializer"]}
GRAFANA = {"grafana": {"baseImage": "grafana/grafana", "version": "7.5.11"}}
CASES: dict[str, TidbMonitor] = {
    "smallest": monitor(),
    "several clusters, DM, TLS, shards": monitor(dm=DM, shards=3, replicaExternalLabelName=""),
    # a label that sorts before the replica's, which v1.6 leaves unchanged in the ConfigMap
    "labels": monitor(externalLabels={"a_region": "eu", "stage": "$(POD_NAME)"}, replicaExternalLabelName="replica"),
    "alerts": monitor(alertmanagerURL="alertmanager.monitoring:9093"),
    "rules of one's own": monitor(**prometheus(config={"ruleConfigRef": {"name": "mine"}})),
    "remote write": monitor(**prometheus(remoteWrite=[ENDPOINT, {"url": "http://b/", "bearerToken": "token"}])),
    "the operator": monitor({OPERATOR_NAMESPACE: "ns"}, **GRAFANA),
}
CASES_BY_NAME = pytest.mark.parametrize("name", CASES)


def objects(wanted: TidbMonitor) -> tuple[Json, dict[str, Json]]:
    """The StatefulSet of the last shard, and the ConfigMaps by name."""
    made = [(resource.kind, body) for resource, body in everything(wanted, INPUTS)]
    config_maps = {body["metadata"]["name"]: body for kind, body in made if kind == "ConfigMap"}
    return [body for kind, body in made if kind == "StatefulSet"][-1], config_maps


def check(promtool: str, name: str, directory: Path, *, finds_pods: bool) -> None:
    """Let promtool read the configuration of a case."""
    stateful_set, config_maps = objects(CASES[name])
    tree = rendered(stateful_set, config_maps, directory, "basic-monitor-0", "ns")
    assert "$(" not in json.dumps(tree)
    for job in tree["scrape_configs"]:
        # Debian's is built without
        if not finds_pods:
            assert job.pop("kubernetes_sd_configs")
    text = moved(tree, directory, config_maps)
    pair = Authority().pair()
    for file in (directory / "assets").iterdir():
        file.write_bytes(pair.key if file.suffix == ".key" else pair.cert)
    (directory / "prometheus.yml").write_text(text)
    done = subprocess.run(
        [promtool, "check", "config", str(directory / "prometheus.yml")], capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.slow
@CASES_BY_NAME
@pytest.mark.rule("other-resources-3.5")
def test_promtool_takes_all_but_the_discovery_of_pods(promtool: str, tmp_path: Path, name: str) -> None:
    check(promtool, name, tmp_path, finds_pods=False)


@pytest.mark.slow
@CASES_BY_NAME
@pytest.mark.rule("other-resources-3.5")
def test_promtool_takes_the_configuration(tmp_path: Path, name: str) -> None:
    check(built("promtool"), name, tmp_path, finds_pods=True)


@pytest.mark.slow
@pytest.mark.rule("other-resources-3.6")
def test_the_pod_replaces_every_placeholder_by_its_names(tmp_path: Path) -> None:
    stateful_set, config_maps = objects(CASES["labels"])
    tree = rendered(stateful_set, config_maps, tmp_path, "basic-monitor-0", "ns")
    expected = {"a_region": "eu", "replica": "ns_basic-monitor-0", "stage": "basic-monitor-0"}
    assert expected == tree["global"]["external_labels"]
    stateful_set, config_maps = objects(CASES["several clusters, DM, TLS, shards"])
    tree = rendered(stateful_set, config_maps, tmp_path, "basic-monitor-shard-2-0", "ns")
    assert {2} == {each["relabel_configs"][-1]["regex"] for each in tree["scrape_configs"]}


@pytest.mark.rule("other-resources-3.6")
def test_grafana_finds_its_dashboards_where_they_are_mounted() -> None:
    stateful_set, config_maps = objects(CASES["the operator"])
    found: Json = json.loads(config_maps["basic-monitor-grafana"]["data"]["dashboards.yaml"])
    (grafana,) = [each for each in stateful_set["spec"]["template"]["spec"]["containers"] if each["name"] == "grafana"]
    mounted = {each["mountPath"] for each in grafana["volumeMounts"]}
    for provider in found["providers"]:
        assert provider["options"]["path"] in mounted


def test_every_config_map_is_below_the_maximum_size() -> None:
    _, config_maps = objects(CASES["the operator"])
    assert all(len(json.dumps(each)) < 1_000_000 for each in config_maps.values())
