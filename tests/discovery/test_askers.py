"""Authentication of questions (objects.md 10.3): forged ones begin no second cluster."""

from typing import Any

import msgspec
import pytest

from discovery.askers import compares_addresses, doubt_about
from discovery.asking import Refused
from discovery.service import Discovery
from kube.objects import Object
from tests.discovery.worlds import SERVICE, World, address, cluster, membership

PLACE = "10.0.0.1"
SECOND = "fd00::1"
BEGIN = "--initial-cluster=demo-pd-0=http://demo-pd-0.demo-pd-peer.default.svc:2380"
FORGED = "the question came from 10.6.6.6"


def pod(*, owner: str = "demo-pd", ready: bool = True, probe: bool = False, addresses: Any = (PLACE, SECOND)) -> Object:
    """A PD pod. Without a probe, it is Ready as soon as its containers run."""
    tree = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "demo-pd-0",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "uid": "u"}],
        },
        "spec": {"containers": [{"name": "pd"} | ({"readinessProbe": {"tcpSocket": {}}} if probe else {})]},
        "status": {
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "podIP": addresses[0] if addresses else None,
            "podIPs": [{"ip": each} for each in addresses],
        },
    }
    return Object(msgspec.json.encode(tree), "v1", "Pod")


def doubt(found: Object | None, source: str = PLACE, *, compares: bool = True) -> str:
    return doubt_about(found, "demo-pd-0", "demo-pd", source, compares=compares)


@pytest.mark.parametrize("source", [PLACE, SECOND])
@pytest.mark.parametrize(("ready", "probe"), [(True, False), (False, True), (False, False)])
@pytest.mark.rule("objects-10.3")
def test_accepts_the_question_of_a_waiting_pod(source: str, ready: bool, probe: bool) -> None:
    assert "" == doubt(pod(ready=ready, probe=probe), source)


@pytest.mark.parametrize(
    ("found", "source", "reason"),
    [
        (None, PLACE, "does not exist"),
        (pod(owner="other-pd"), PLACE, "does not belong to StatefulSet demo-pd"),
        (pod(ready=True, probe=True), PLACE, "is Ready, so its volume is not empty"),
        (pod(addresses=()), PLACE, "does not know the address"),
        (pod(), "10.6.6.6", "came from 10.6.6.6, not from 10.0.0.1 or fd00::1; where the network hides addresses"),
        (pod(), "", "came from an unknown address"),
    ],
)
@pytest.mark.rule("objects-10.3")
def test_doubts_a_question_in_the_name_of_a_pod(found: Object | None, source: str, reason: str) -> None:
    assert reason in doubt(found, source)


@pytest.mark.parametrize(
    ("environ", "compares"),
    [({}, True), ({"DISCOVERY_MTLS_ENABLED": "true"}, False), ({"DISCOVERY_SKIP_ADDRESS_CHECK": "true"}, False)],
)
@pytest.mark.rule("objects-10.3")
def test_a_certificate_or_the_user_replaces_the_address(environ: dict[str, str], compares: bool) -> None:
    assert compares is compares_addresses(environ)
    assert bool(doubt(pod(), "10.6.6.6", compares=compares)) is compares


def told(discovery: Discovery, ordinal: int) -> str:
    """The answer to a pod, or the reason for a refusal."""
    try:
        return discovery.new(address(ordinal), PLACE)
    except Refused as refused:
        return str(refused)


@pytest.mark.rule("F40")
def test_forged_questions_begin_no_second_cluster() -> None:
    world = World(cluster(), pods={"demo-pd-1": FORGED, "demo-pd-2": FORGED})
    discovery = world.discovery()
    for ordinal in (1, 2):
        assert FORGED in told(discovery, ordinal)
    assert "demo-pd-1, demo-pd-2 may hold data" in told(discovery, 0)
    world.pods.clear()
    for ordinal in (1, 2):
        told(discovery, ordinal)
    assert BEGIN == told(discovery, 0)


@pytest.mark.rule("objects-10.3")
def test_a_doubtful_question_may_join() -> None:
    world = World(cluster(), {SERVICE: membership(0)}, pods={"demo-pd-1": FORGED})
    assert told(world.discovery(), 1).startswith("--join=")


@pytest.mark.rule("objects-10.3")
def test_remembers_only_existing_pods() -> None:
    world = World(cluster())
    discovery = world.discovery()
    world.pods = {f"demo-pd-{ordinal}": "does not exist" for ordinal in range(3, 500)}
    for ordinal in range(500):
        told(discovery, ordinal)
    (memory,) = discovery._memories.values()
    assert {"demo-pd-0", "demo-pd-1", "demo-pd-2"} == set(memory.asked)
