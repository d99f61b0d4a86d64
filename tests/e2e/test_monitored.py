"""A real Prometheus runs a TidbMonitor's configuration: it finds the pods of the sandbox, and scrapes each of them
(3.5)."""

import contextlib
import json
from collections.abc import Iterator

import pytest
import yaml

from apis.monitors import OPERATOR_NAMESPACE
from cli import certs
from cli.manifests import Manifest
from kube.client import Client
from kube.objects import Json, condition_of
from kube.resources import CONFIG_MAPS, PODS, SECRETS, STATEFUL_SETS, TIDB_MONITORS, Resource
from tests.controllers.tidbmonitor.monitors import monitor
from tests.e2e import operators, prometheus
from tests.e2e.prometheus import Prometheus
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, create_cluster, sample
from tests.monitoring.conftest import built
from tests.monitoring.generated import moved, rendered

pytestmark = pytest.mark.slow

CLUSTER, SAFE = "advanced", "safe"


def with_tls(name: str, namespace: str) -> Json:
    """A small cluster with TLS between its components."""
    body = sample("tls")
    spec = {part: each | {"replicas": 1} for part, each in body["spec"].items() if part in ("pd", "tikv", "tidb")}
    return body | {"metadata": {"name": name, "namespace": namespace}, "spec": body["spec"] | spec}


@pytest.fixture(scope="module")
def namespace(sandbox: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A namespace with two Ready clusters, one of them with TLS, and a Ready monitor of two shards for both."""
    built("prometheus")
    with sandbox.namespace() as name, operators.running(sandbox.new_log(), sandbox.environment()) as operator:
        create_cluster(sandbox.client, sample(CLUSTER), name)
        safe = with_tls(SAFE, name)
        for secret in certs.secrets([Manifest(SAFE, safe)], tmp_path_factory.mktemp("ca")):
            sandbox.client.create(SECRETS, secret, name)
        create_cluster(sandbox.client, safe, name)
        clusters = [{"name": CLUSTER}, {"name": SAFE}]
        body = monitor("watch", {OPERATOR_NAMESPACE: name}, clusters=clusters, shards=2)
        sandbox.client.create(TIDB_MONITORS, body, name)
        for each in (CLUSTER, SAFE):
            await_ready(sandbox, operator, each, name, 90.0)
        eventually(lambda: is_ready(sandbox.client, name), 30.0, lambda: operator.said[-3000:])
        yield name
        sandbox.client.delete(TIDB_MONITORS, "watch", name)
        eventually(lambda: sandbox.client.find(TIDB_MONITORS, "watch", name) is None)


def is_ready(client: Client, namespace: str) -> bool:
    """True if the monitor reports it."""
    status = client.get(TIDB_MONITORS, "watch", namespace).decode().get("status") or {}
    return condition_of(status.get("conditions") or (), "Ready").get("status") == "True"


def bodies(place: Place, resource: Resource, namespace: str) -> dict[str, Json]:
    """All objects of a kind, by name."""
    return {each.metadata.name: each.decode() for each in place.client.list_page(resource, namespace).items}


@pytest.fixture(scope="module")
def shards(sandbox: Place, namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Prometheus]]:
    """Prometheus as the pod of each shard runs it; it reaches API server and pods from outside, through the proxy."""
    config_maps = bodies(sandbox, CONFIG_MAPS, namespace)
    assets = sandbox.client.get(SECRETS, "tidbmonitor-watch-tls-assets", namespace).decode()["data"]
    with contextlib.ExitStack() as stack:
        found = {}
        for name, stateful_set in bodies(sandbox, STATEFUL_SETS, namespace).items():
            if not name.startswith("watch-monitor"):
                continue
            directory = tmp_path_factory.mktemp(name)
            tree = rendered(stateful_set, config_maps, directory, f"{name}-0", namespace)
            text = moved(from_outside(tree, sandbox), directory, config_maps, assets)
            found[name] = stack.enter_context(prometheus.serving(built("prometheus"), directory, text))
        yield found


def from_outside(tree: Json, place: Place) -> Json:
    """The configuration with the ways to the sandbox; nothing else is changed but the pause between scrapes."""
    kubeconfig = str(place.kubeconfig("default", "default"))
    for job in tree["scrape_configs"]:
        job |= {"proxy_url": place.proxy, "scrape_interval": "1s", "scrape_timeout": "1s"}
        for discovery in job["kubernetes_sd_configs"]:
            discovery.pop("api_server")
            discovery["kubeconfig_file"] = kubeconfig
    return tree


def expected(place: Place, namespace: str) -> dict[str, str]:
    """The pods that ask to be scraped, each with its component."""
    found = {}
    for name, pod in bodies(place, PODS, namespace).items():
        meta = pod["metadata"]
        if meta.get("annotations", {}).get("prometheus.io/scrape") == "true":
            found[name] = meta["labels"]["app.kubernetes.io/component"]
    return found


def targets(shard: Prometheus) -> list[Json]:
    """The active targets."""
    found: list[Json] = shard.ask("targets", state="active")["activeTargets"]
    return found


def shares(shard: Prometheus) -> set[str]:
    """The remainders of the addresses' hashes that a shard keeps, in all its jobs."""
    jobs = yaml.safe_load(shard.ask("status/config")["yaml"])["scrape_configs"]
    rules = [rule for job in jobs for rule in job["relabel_configs"]]
    return {rule["regex"] for rule in rules if rule.get("source_labels") == ["__tmp_hash"]}


@pytest.mark.rule("3.5")
def test_every_pod_is_a_target_of_one_shard_and_answers(
    sandbox: Place, namespace: str, shards: dict[str, Prometheus]
) -> None:
    wanted = expected(sandbox, namespace)
    assert {"pd", "tikv", "tidb"} <= set(wanted.values())

    def all_answer() -> bool:
        active = [each for shard in shards.values() for each in targets(shard)]
        return {each["labels"]["instance"] for each in active} >= wanted.keys() and all(
            each["health"] == "up" for each in active
        )

    def told() -> list[tuple[str, str]]:
        return [(each["scrapeUrl"], each["lastError"]) for shard in shards.values() for each in targets(shard)]

    eventually(all_answer, told=told)
    seen = [
        (each["labels"]["instance"], each["labels"]["component"], each["scrapePool"])
        for shard in shards.values()
        for each in targets(shard)
    ]
    assert len(seen) == len(set(seen)), "a target of two shards"
    assert sorted(wanted.items()) == sorted((instance, component) for instance, component, _ in seen)
    # by the hash of addresses, which differ from run to run, one may have them all
    assert [{"0"}, {"1"}] == sorted((shares(shard) for shard in shards.values()), key=sorted)


@pytest.mark.rule("3.5")
def test_scrapes_pods_with_tls_by_the_certificate_of_the_cluster(shards: dict[str, Prometheus]) -> None:
    schemes = {
        (each["labels"]["cluster"], each["scrapeUrl"].partition(":")[0])
        for shard in shards.values()
        for each in targets(shard)
        if each["health"] == "up"
    }
    assert {(CLUSTER, "http"), (SAFE, "https")} == schemes


@pytest.mark.rule("3.5")
def test_series_say_whose_they_are(namespace: str, shards: dict[str, Prometheus]) -> None:
    found = [labels for shard in shards.values() for labels, _ in shard.query("up")]
    assert {CLUSTER, SAFE} == {labels["cluster"] for labels in found}
    assert {f"{namespace}-{each}" for each in (CLUSTER, SAFE)} == {labels["tidb_cluster"] for labels in found}
    assert {namespace} == {labels["kubernetes_namespace"] for labels in found}
    tikv = [labels for shard in shards.values() for labels, _ in shard.query("tikv_raftstore_region_count")]
    assert {"tikv"} == {labels["component"] for labels in tikv}


@pytest.mark.rule("3.5")
def test_each_replica_has_its_own_label(namespace: str, shards: dict[str, Prometheus]) -> None:
    for name, shard in shards.items():
        labels = yaml.safe_load(shard.ask("status/config")["yaml"])["global"]["external_labels"]
        assert {"prometheus_replica": f"{namespace}_{name}-0"} == labels


def test_alerts_of_the_operator_are_judged(shards: dict[str, Prometheus]) -> None:
    shard = shards["watch-monitor"]

    def rules() -> list[Json]:
        return [rule for group in shard.ask("rules")["groups"] for rule in group["rules"]]

    eventually(lambda: rules() and all(rule["health"] != "unknown" for rule in rules()))
    assert [] == [rule for rule in rules() if rule["health"] != "ok"]


def test_every_query_of_the_dashboard_is_understood(
    sandbox: Place, namespace: str, shards: dict[str, Prometheus]
) -> None:
    data = bodies(sandbox, CONFIG_MAPS, namespace)["watch-monitor-operator"]["data"]
    panels = json.loads(data["tidb-operator.json"])["panels"]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    assert queries
    for query in queries:
        shards["watch-monitor"].query(_with_variables(query))


def _with_variables(query: str) -> str:
    """A query as Grafana sends it."""
    return query.replace("$__rate_interval", "1m").replace("$job", ".*").replace("$instance", ".*")
