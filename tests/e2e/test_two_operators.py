"""Two operators whose NAMESPACE differs hold two Leases, and both lead: they notice each other and say so."""

from collections.abc import Callable, Mapping

import pytest

from cli import manifests
from kube.objects import Json, condition_of
from kube.resources import DM_CLUSTERS, TIDB_CLUSTERS
from tests.e2e import operators
from tests.e2e.marks import IN_ONE_WORLD
from tests.e2e.operators import Operator, sample_value
from tests.e2e.taking_over import leads
from tests.e2e.waiting import eventually, pause
from tests.e2e.worlds import MANIFESTS, OPERATOR_NAMESPACE, Place, await_ready, create_cluster, sample

pytestmark = [pytest.mark.slow, IN_ONE_WORLD]

_QUICK = ("--resync-duration=1s", "--leader-lease-duration=3s", "--leader-renew-deadline=2s")
_QUICK_RETRY = "--leader-retry-period=500ms"


def _elsewhere(place: Place, environment: Mapping[str, str], namespace: str) -> Mapping[str, str]:
    """The same operator, installed in another namespace."""
    if place.name == "real":
        rights = (MANIFESTS / "operator" / "rbac-cluster.yaml").read_text().replace(OPERATOR_NAMESPACE, namespace)
        file = place.directory / f"rights-{namespace}.yaml"
        file.write_text(rights.replace("tidb-operator:", f"{namespace}:"))
        manifests.apply(place.client, manifests.read(file))
    release = environment["HELM_RELEASE"]
    return {**place.environment(None, namespace), "HELM_RELEASE": release}


def _condition(place: Place, namespace: str, kind: str) -> Json:
    status = place.client.get(TIDB_CLUSTERS, "basic", namespace).decode()["status"]
    return next((each for each in status["conditions"] if each["type"] == kind), {})


def _conflict(place: Place, namespace: str) -> Json:
    return _condition(place, namespace, "OperatorConflict")


def _conflict_of_dm(place: Place, namespace: str) -> Json:
    status = place.client.get(DM_CLUSTERS, "sync", namespace).decode().get("status") or {}
    return condition_of(status.get("conditions") or (), "OperatorConflict")


def _counted(operator: Operator, of: Mapping[str, str]) -> float:
    return sample_value(operator.page("/metrics")[1], "tidb_operator_cluster_operators", of)


def _notices(operator: Operator) -> Callable[[], bool]:
    return lambda: operator.has_said(event="another operator manages this cluster")


def test_two_operators_in_different_namespaces_notice_each_other(place: Place, namespace: str) -> None:
    one = place.environment()
    two = _elsewhere(place, one, namespace)
    name = operators.lease_name(one)
    with operators.running(place.new_log(), one, *_QUICK, _QUICK_RETRY) as first:
        create_cluster(place.client, sample("basic"), namespace)
        await_ready(place, first, "basic", namespace)
        assert {} == _conflict(place, namespace)
        of_dm = sample("dm")
        place.client.create(DM_CLUSTERS, of_dm | {"spec": of_dm["spec"] | {"paused": True}}, namespace)
        with operators.running(place.new_log(), two, *_QUICK, _QUICK_RETRY) as second:
            eventually(lambda: leads(second))
            for operator in (first, second):
                eventually(_notices(operator), told=lambda: operator.said[-3000:])  # noqa: B023
            # each has reported one of the two clusters, perhaps not this one
            eventually(lambda: _conflict(place, namespace).get("status") == "True")
            message = _conflict(place, namespace)["message"]
            assert all(f"{each}/{name}" in message for each in ("tidb-admin", namespace))
            assert f"; {message}" in _condition(place, namespace, "Ready")["message"]
            eventually(lambda: message == _conflict_of_dm(place, namespace).get("message"))
            of = {"namespace": namespace, "name": "basic"}
            for operator in (first, second):
                eventually(lambda: 2 == _counted(operator, of))  # noqa: B023
            assert 0 == second.stop()
        eventually(lambda: _conflict(place, namespace)["status"] == "False")
        eventually(lambda: _conflict_of_dm(place, namespace)["status"] == "False")
        assert {"Ready": "True", "Progressing": "False", "OperatorConflict": "False"} == {
            each["type"]: each["status"]
            for each in place.client.get(TIDB_CLUSTERS, "basic", namespace).decode()["status"]["conditions"]
        }


def test_operators_that_share_the_clusters_out_have_nothing_to_say(place: Place, namespace: str) -> None:
    one = place.environment()
    two = _elsewhere(place, one, namespace)
    with (
        operators.running(place.new_log(), one, *_QUICK, _QUICK_RETRY, "--selector=version!=canary") as first,
        operators.running(place.new_log(), two, *_QUICK, _QUICK_RETRY, "--selector=version=canary") as second,
    ):
        create_cluster(place.client, sample("basic"), namespace)
        await_ready(place, first, "basic", namespace)
        for operator in (first, second):
            eventually(lambda: operator.has_said(event="another operator is at work"))  # noqa: B023
        # several resyncs
        eventually(lambda: first.page("/metrics")[1].count("tidb_operator_cluster_operators{") == 1)
        assert {} == _conflict(place, namespace)
        assert not any(_notices(operator)() for operator in (first, second))


def test_an_operator_that_cannot_see_the_other_repeats_its_report_and_they_do_not_fight(
    place: Place, namespace: str
) -> None:
    one = place.environment()
    two = _elsewhere(place, one, namespace)
    with (
        operators.running(place.new_log(), one, *_QUICK, _QUICK_RETRY) as first,
        operators.running(place.new_log(), two, *_QUICK, _QUICK_RETRY, "--cluster-scoped=false") as second,
    ):
        create_cluster(place.client, sample("basic"), namespace)
        await_ready(place, first, "basic", namespace)
        eventually(_notices(first))
        eventually(lambda: _conflict(place, namespace).get("status") == "True")
        pause(3.0)
        version = place.client.get(TIDB_CLUSTERS, "basic", namespace).metadata.resource_version
        pause(5.0)
        assert version == place.client.get(TIDB_CLUSTERS, "basic", namespace).metadata.resource_version
        assert not _notices(second)()
        assert _conflict(place, namespace)["message"] in _condition(place, namespace, "Ready")["message"]
