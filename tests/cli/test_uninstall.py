"""`tidb-operator uninstall --check`: what would hang without the operator, and in which order to delete it."""

import json
from collections.abc import Iterator

import pytest

from apis.crd import KINDS, definition
from cli.tidb.output import rendered
from cli.uninstall import FREE, HANGS, ORDER, check, page_of
from kube.client import Client
from kube.resources import BACKUPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, TIDB_MONITORS
from ports.transport import ByteStream, Request, Response, Transport
from tests.apis.backups import by_br, tree
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld
from tests.controllers.tidbmonitor.monitors import monitor

PROTECTED = "tidb.pingcap.com/backup-protection"


@pytest.fixture
def world() -> Iterator[BackupsWorld]:
    made = BackupsWorld()
    try:
        yield made
    finally:
        made.stop()


def backup(world: BackupsWorld, name: str, *finalizers: str, mode: str = "snapshot") -> None:
    """A Backup, as an operator that has gone left it."""
    body = tree("Backup", by_br(backupMode=mode), name=name, namespace=NAMESPACE, finalizers=list(finalizers))
    world.admin.create(BACKUPS, body, NAMESPACE)


def test_every_kind_has_its_place_in_the_order() -> None:
    assert sorted(definition(kind)["spec"]["names"]["kind"] for kind in KINDS) == sorted(each.kind for each in ORDER)


def test_reports_nothing_if_no_object_has_a_finalizer_of_the_operator(world: BackupsWorld) -> None:
    backup(world, "plain", "example.com/copying")
    report = check(world.admin)
    assert (FREE, []) == (report.code, list(report.held))
    assert "No object that could be listed has a finalizer of the operator.\n" == rendered(page_of(report))


def test_lists_objects_that_would_hang_in_the_order_of_deletion(world: BackupsWorld) -> None:
    """A cluster-scoped TidbMonitor, a Backup, then the CRDs: with the operator gone, none of them ends."""
    wide = monitor("wide", clusterScoped=True)
    wide["metadata"]["finalizers"] = ["tidb.pingcap.com/monitor-protection"]
    world.admin.create(TIDB_MONITORS, wide, NAMESPACE)
    backup(world, "full", PROTECTED, "example.com/copying")
    backup(world, "log", PROTECTED, mode="log")

    report = check(world.admin)

    assert HANGS == report.code
    documents = [each.document for each in report.held]
    assert ["Backup log", "Backup full", "TidbMonitor wide"] == [f"{each['kind']} {each['name']}" for each in documents]
    assert documents[0]["waitsFor"].startswith("the operator to stop the log backup in the cluster")
    assert documents[2]["waitsFor"] == "the operator to delete its ClusterRole and ClusterRoleBinding"
    assert "kubectl delete backup full -n lab" == documents[1]["delete"]
    patch = '{"metadata":{"finalizers":["example.com/copying"]}}'
    assert f"kubectl patch backup full -n lab --type=merge -p '{patch}'" == documents[1]["release"]
    assert "Backup lab/log" in rendered(page_of(report), 200)


def test_an_object_under_deletion_shows_what_it_waits_for(world: BackupsWorld) -> None:
    backup(world, "full", PROTECTED)
    said = {"type": "Waiting", "status": "True", "reason": "FilesInUse", "message": "the files are kept"}
    world.admin.patch(BACKUPS, "full", NAMESPACE, {"status": {"conditions": [said]}})
    world.admin.delete(BACKUPS, "full", NAMESPACE)
    (document,) = (each.document for each in check(world.admin).held)
    assert (True, "the files are kept") == (document["isBeingDeleted"], document["waitsFor"])


def test_a_reported_object_does_hang_and_the_printed_patch_releases_it(world: BackupsWorld) -> None:
    backup(world, "full", PROTECTED)
    world.admin.delete(NAMESPACES, NAMESPACE)
    world.world.advance(60)
    assert world.admin.find(BACKUPS, "full", NAMESPACE) is not None
    world.admin.patch(BACKUPS, "full", NAMESPACE, {"metadata": {"finalizers": None}})
    world.world.advance(60)
    assert world.admin.find(NAMESPACES, NAMESPACE) is None


def test_a_kind_whose_definition_is_missing_has_no_objects(world: BackupsWorld) -> None:
    world.admin.delete(CUSTOM_RESOURCE_DEFINITIONS, "backups.pingcap.com")
    assert FREE == check(world.admin).code


class Denying:
    """The transport of a user who may list everything but TidbMonitors."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def request(self, request: Request) -> Response:
        if "/tidbmonitors" in request.url:
            refusal = {"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no right"}
            return Response(403, {}, json.dumps(refusal).encode())
        return self._transport.request(request)

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        return self._transport.stream(request, idle_timeout)


def test_a_resource_that_the_user_may_not_list_counts_as_hanging(world: BackupsWorld) -> None:
    report = check(Client(Denying(world.world.transport())))
    assert (HANGS, [TIDB_MONITORS]) == (report.code, list(report.unseen))
    assert "You may not list tidbmonitors in all namespaces" in rendered(page_of(report), 200)
