"""client-go itself is at home in both worlds: it discovers, follows and leads (bench/peers)."""

from pathlib import Path

import pytest

from bench import client_go
from kube.resources import LEASES, PODS, TIDB_CLUSTERS
from tests.e2e import operators
from tests.e2e.taking_over import leads, stands_by
from tests.e2e.waiting import eventually
from tests.e2e.worlds import OPERATOR_NAMESPACE, SERVICE_ACCOUNT, Place, create_cluster, sample

# the first of them builds the peer, which takes minutes where Go has built nothing before
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="session")
def program() -> Path:
    """The peer; skips where Go or its module cache is absent."""
    try:
        return client_go.build(offline=True)
    except client_go.ClientGoMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def kubeconfig(place: Place) -> Path:
    """A kubeconfig with the rights of the operator."""
    return place.kubeconfig(OPERATOR_NAMESPACE, SERVICE_ACCOUNT)


def test_client_go_discovers_the_served_resources(program: Path, kubeconfig: Path) -> None:
    found = client_go.seen(client_go.start(program, kubeconfig, "-mode", "discovery"))

    assert {
        "v1/pods",
        "apps/v1/statefulsets",
        "coordination.k8s.io/v1/leases",
        "pingcap.com/v1alpha1/tidbclusters",
        "rbac.authorization.k8s.io/v1/roles",
    } <= set(found["served"])
    assert found["version"].startswith("v1.")


def test_client_go_informers_see_the_existing_objects(
    program: Path, kubeconfig: Path, place: Place, namespace: str
) -> None:
    create_cluster(place.client, sample("basic"), namespace)
    containers = [{"name": "only", "image": "none"}]
    place.client.create(PODS, {"metadata": {"name": "extra"}, "spec": {"containers": containers}}, namespace)
    clusters, pods = (len(place.client.list_page(each).items) for each in (TIDB_CLUSTERS, PODS))

    dynamic = ("-mode", "dynamic", "-resource", "pingcap.com/v1alpha1/tidbclusters")
    assert min(clusters, pods) >= 1
    assert clusters == client_go.seen(client_go.start(program, kubeconfig, *dynamic))["objects"]
    assert pods == client_go.seen(client_go.start(program, kubeconfig, "-mode", "typed"))["objects"]


@pytest.mark.rule("LE-13", "LE-19")
def test_a_lease_that_client_go_releases_is_taken_at_once(program: Path, kubeconfig: Path, place: Place) -> None:
    environment = dict(place.environment(), HELM_RELEASE="")
    lease = f"{OPERATOR_NAMESPACE}/tidb-controller-manager"
    with client_go.start(program, kubeconfig, "-mode", "lease", "-lease", lease, "-hold", "10s") as peer:
        eventually(lambda: _holder(place) == "client-go")
        with operators.running(place.new_log(), environment) as operator:
            eventually(lambda: stands_by(operator), told=lambda: operator.said[-3000:])
            assert not leads(operator)
            led = client_go.seen(peer)
            eventually(lambda: leads(operator), within=8.0)
    assert 10.0 == pytest.approx(led["led_until"] - led["led_from"], abs=2.0)


def _holder(place: Place) -> str:
    lease = place.client.find(LEASES, "tidb-controller-manager", OPERATOR_NAMESPACE)
    return "" if lease is None else str(lease.decode()["spec"].get("holderIdentity") or "")
