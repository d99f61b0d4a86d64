"""The doctor's findings in a world, as if an operator led there."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from cli.doctor.diagnosis import diagnose
from cli.doctor.finding import Finding
from cli.doctor.reading import read
from kube.client import Client
from kube.errors import NotFound
from kube.leases import micro_time
from kube.resources import LEASES
from tests.cli.doctor.planting import Plant
from tests.operator_world import NAMESPACE, OperatorWorld

LEASE = "tidb-controller-manager"


def renew(client: Client, now: datetime, name: str = LEASE, scope: str = '{"namespace":"","selector":""}') -> None:
    """An operator leads, as its Lease says."""
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": micro_time(now)}
    annotations = {"tidb.pingcap.com/operator-scope": scope}
    body = {"metadata": {"name": name, "annotations": annotations}, "spec": spec}
    try:
        client.patch(LEASES, name, NAMESPACE, body)
    except NotFound:
        client.create(LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **body}, NAMESPACE)


def findings(world: OperatorWorld, name: str, later: timedelta = timedelta()) -> Sequence[Finding]:
    """The findings about a cluster now, or later if nothing happened until then."""
    now = world.clock.wall() + later
    renew(world.admin, now)
    return look(world, name, later)


def look(world: OperatorWorld, name: str, later: timedelta = timedelta()) -> Sequence[Finding]:
    """Like `findings`, without renewing the operator's Lease."""
    (facts,) = read(world.admin, NAMESPACE, [name], world.clock.wall() + later)
    assert {} == facts.unread
    return diagnose(facts)


def reasons(found: Sequence[Finding]) -> set[str]:
    """The reasons of findings."""
    return {each.reason for each in found}


def shows(found: Sequence[Finding], name: str, plant: Plant) -> None:
    """A plant is found as it should be, and nothing that is not there. Raises AssertionError."""
    hits = [each for each in found if each.reason == plant.reason]
    assert plant.reason in reasons(found), found
    assert any(plant.object.format(name=name) in each.objects for each in hits), hits
    if plant.field_:
        assert plant.field_ in {each.field for each in hits}, hits
    if plant.value:
        assert plant.value in {each.value for each in hits}, hits
    assert all(each.message and each.way_out and each.severity == plant.severity for each in hits)
    assert reasons(found) - {plant.reason} <= plant.beside, found
