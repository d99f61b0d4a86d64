"""A real Prometheus scrapes a leader and a standby: docs/metrics.md lists what they serve (scheduler-deployment.md
5)."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from controller_manager import reference
from tests.e2e import operators, prometheus
from tests.e2e.operators import Operator
from tests.e2e.prometheus import MONITORING, Prometheus
from tests.e2e.taking_over import leads, stands_by
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, create_cluster, delete_cluster, sample
from tests.monitoring.conftest import required

pytestmark = pytest.mark.slow

CLUSTERS = '{__name__=~"tidb_operator_cluster_.+"}'
_SUFFIX = re.compile(r"_(bucket|sum|count)$")
_OF_EVERY_PROCESS = {
    "tidb_operator_cluster_ready",
    "workqueue_depth",
    "rest_client_requests_total",
    "informer_lists_total",
}
_OF_PROMETHEUS = {"__name__", "job", "instance", "le"}


@pytest.fixture(scope="module")
def cluster(sandbox: Place) -> Iterator[str]:
    """A namespace with a Ready cluster, a leader and a standby, each scraped."""
    with sandbox.namespace() as namespace:
        yield namespace


@pytest.fixture(scope="module")
def scraping(sandbox: Place, cluster: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus, once it has scraped both."""
    program, environment = required("prometheus"), sandbox.environment()
    with operators.running(sandbox.new_log(), environment) as leader:
        eventually(lambda: leads(leader))
        create_cluster(sandbox.client, sample("basic"), cluster)
        await_ready(sandbox, leader, "basic", cluster)
        with operators.running(sandbox.new_log(), environment) as standby:
            eventually(lambda: stands_by(standby))
            targets = {"leader": _address(leader), "standby": _address(standby)}
            with prometheus.running(program, tmp_path_factory.mktemp("prometheus"), targets) as made:
                eventually(lambda: made.query(f'sum(up{{job="{prometheus.JOB}"}}) == 2'), told=lambda: made.said)
                yield made


def _address(operator: Operator) -> str:
    port = next(event["port"] for event in operator.events if "serving metrics" in event["event"])
    return f"127.0.0.1:{port}"


@pytest.mark.parametrize("instance", ["leader", "standby"])
def test_every_metric_served_is_in_the_reference_and_the_other_way_round(scraping: Prometheus, instance: str) -> None:
    told = scraping.ask("targets/metadata", match_target=f'{{instance="{instance}"}}')
    assert reference.labels().keys() == {each["metric"] for each in told}


def test_series_have_the_labels_of_the_reference(scraping: Prometheus) -> None:
    listed, seen = reference.labels(), defaultdict[str, set[str]](set)
    for series in scraping.ask("series", **{"match[]": f'{{job="{prometheus.JOB}"}}'}):
        name = series["__name__"]
        name = name if name in listed else _SUFFIX.sub("", name)
        seen[name] |= series.keys() - _OF_PROMETHEUS
    assert {name: set(listed[name]) for name in seen if name in listed} == {
        name: labels for name, labels in seen.items() if name in listed
    }
    assert _OF_EVERY_PROCESS <= seen.keys()


def test_only_the_leader_serves_series_of_clusters(scraping: Prometheus) -> None:
    assert {"leader"} == {labels["instance"] for labels, _ in scraping.query(CLUSTERS)}


def test_a_ready_cluster_has_the_expected_series(scraping: Prometheus, cluster: str) -> None:
    of = f'{{namespace="{cluster}", name="basic"}}'
    # read from the operator's cache, which sees writes a moment later
    eventually(lambda: [1.0] == [value for _, value in scraping.query(f"tidb_operator_cluster_ready{of}")])
    for metric in ("spec_replicas", "desired_replicas", "ready_replicas", "members", "healthy_members"):
        found = {each["component"]: value for each, value in scraping.query(f"tidb_operator_cluster_{metric}{of}")}
        assert {"pd": 1.0, "tikv": 1.0, "tidb": 1.0} == found, metric
    versions = {
        each["component"]: each["version"] for each, _ in scraping.query(f"tidb_operator_cluster_version_info{of}")
    }
    assert dict.fromkeys(("pd", "tikv", "tidb"), sample("basic")["spec"]["version"]) == versions
    (age,) = [value for _, value in scraping.query(f"tidb_operator_cluster_sync_age_seconds{of}")]
    assert 0 <= age < 60


@pytest.mark.rule("8.3")
def test_the_host_of_requests_has_no_scheme(scraping: Prometheus) -> None:
    hosts = {labels["host"] for labels, _ in scraping.query("rest_client_requests_total")}
    assert 1 == len(hosts)
    assert re.fullmatch(r"127\.0\.0\.1:\d+", hosts.pop())


def test_prometheus_can_judge_every_rule(scraping: Prometheus) -> None:
    def rules() -> list[dict[str, str]]:
        return [rule for group in scraping.ask("rules")["groups"] for rule in group["rules"]]

    eventually(lambda: all(rule["health"] != "unknown" for rule in rules()))
    assert [] == [rule for rule in rules() if rule["health"] != "ok"]


def test_prometheus_understands_every_query_of_the_dashboard(scraping: Prometheus) -> None:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"].replace("$__rate_interval", "1m").replace("$job", ".*").replace("$instance", ".*")
            scraping.query(query)


def test_a_deleted_cluster_has_no_series(scraping: Prometheus, sandbox: Place, cluster: str) -> None:
    create_cluster(sandbox.client, sample("basic") | {"metadata": {"name": "gone"}}, cluster)
    eventually(lambda: scraping.query('tidb_operator_cluster_ready{name="gone"}'))
    delete_cluster(sandbox.client, "gone", cluster)
    eventually(lambda: not scraping.query(f'{CLUSTERS[:-1]}, name="gone"}}'))
