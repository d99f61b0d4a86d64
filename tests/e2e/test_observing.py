"""`--observe` and `tidb-operator diff` as processes, next to an operator that manages a cluster (docs/migration.md)."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from apis.overlays import overlay_annotation
from kube.resources import LEASES, TIDB_CLUSTERS
from tests.e2e import operators
from tests.e2e.marks import IN_ONE_WORLD
from tests.e2e.operators import sample_value
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, await_ready, conditions, create_cluster, sample

pytestmark = pytest.mark.slow


@IN_ONE_WORLD
def test_plans_nothing_for_a_managed_cluster_and_reports_a_change_without_making_it(
    place: Place, namespace: str
) -> None:
    environment = place.environment()
    with operators.running(place.new_log(), environment) as operator:
        name = create_cluster(place.client, sample("basic"), namespace)
        await_ready(place, operator, name, namespace)
        eventually(lambda: any("Progressing=False Done" in each for each in conditions(place.client, name, namespace)))
    assert (0, "", "") == diff(environment, namespace)

    place.client.patch(TIDB_CLUSTERS, name, namespace, {"spec": {"tidb": {"replicas": 3}}})
    code, told, complaints = diff(environment, namespace)
    assert (1, "") == (code, complaints)
    assert f"+++ {namespace}/statefulsets/basic-tidb (patch)" in told
    assert "-  replicas: 1" in told
    leases = {each.metadata.name for each in place.client.list_page(LEASES).items}

    with operators.running(place.new_log(), environment, "--observe", "--resync-duration=1s") as observer:
        labels = {"verb": "patch", "resource": "statefulsets"}
        eventually(
            lambda: sample_value(observer.page("/metrics")[1], "tidb_operator_planned_writes_total", labels) == 1
        )
        # counted first
        eventually(lambda: observer.has_said(event="would write", name="basic-tidb", dry_run=True))
    assert leases == {each.metadata.name for each in place.client.list_page(LEASES).items}
    assert (1, told, "") == diff(environment, namespace)


@IN_ONE_WORLD
def test_diff_shows_what_a_paused_cluster_holds_back(place: Place, namespace: str) -> None:
    environment = place.environment()
    with operators.running(place.new_log(), environment) as operator:
        name = create_cluster(place.client, sample("basic"), namespace)
        await_ready(place, operator, name, namespace)
    place.client.patch(TIDB_CLUSTERS, name, namespace, {"spec": {"paused": True}})
    assert (0, "", "") == diff(environment, namespace)

    overlay = {"metadata": {"annotations": {overlay_annotation("tikv"): '{"template":{"spec":{"hostIPC":true}}}'}}}
    place.client.patch(TIDB_CLUSTERS, name, namespace, overlay | {"spec": {"tidb": {"replicas": 3}}})
    code, shown, complaints = diff(environment, namespace)
    assert (1, "") == (code, complaints)
    assert shown.startswith(f"# TidbCluster {namespace}/{name} is paused: its changes below wait until spec.paused is")
    assert "-  replicas: 1" in shown
    assert "+      hostIPC: true" in shown


def test_an_api_server_that_is_not_there_is_no_difference(place: Place, namespace: str) -> None:
    code, told, complaints = diff(dict(place.environment()) | {"KUBECONFIG": "/nowhere"}, namespace)
    assert (2, "") == (code, told)
    assert complaints.startswith("tidb-operator: ")


def diff(environment: Mapping[str, str], namespace: str) -> tuple[int, str, str]:
    """Exit code, output and complaints of `tidb-operator diff`."""
    command = [sys.executable, "-m", "cli", "diff", "-n", namespace]
    environ = operators.clean_environment() | dict(environment)
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr
