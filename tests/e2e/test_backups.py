"""Backup, loss of the cluster with its volumes, restore: `backup-manager` is a process, object storage a server."""

import contextlib
from collections.abc import Iterator

import pytest
import yaml

from cli import manifests
from kube.client import Client
from kube.objects import Json
from kube.resources import (
    BACKUPS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESTORES,
    SECRETS,
    Resource,
)
from ports.sql import SqlLogin
from sandbox.dataplane.tables import Tables
from tests.backup_manager.storage.conftest import Place as Bucket
from tests.backup_manager.storage.conftest import s3, s3_place, servers
from tests.backup_manager.storage.servers import CANARY
from tests.backup_manager.storage.specs import SECRET, StorageOfSpec, storage_of_spec
from tests.e2e import operators
from tests.e2e.manager_processes import KUBECONFIG, PROCESS_IMAGE
from tests.e2e.marks import IN_ONE_WORLD
from tests.e2e.operators import Operator
from tests.e2e.waiting import eventually
from tests.e2e.worlds import SAMPLES, Place, await_ready, create_cluster, delete_cluster, exists, sample

__all__ = ["s3", "s3_place", "servers"]

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

_ACCOUNT = "tidb-backup-manager"
_IMAGE = f"-tidb-backup-manager-image={PROCESS_IMAGE}:test"
_DATA = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, what TEXT)",
    "INSERT INTO shop.orders VALUES (1, 'three apples'), (2, 'a pear')",
)


@IN_ONE_WORLD
def test_restores_a_cluster_that_lost_its_volumes(place: Place, namespace: str, s3_place: Bucket) -> None:
    client, told = place.client, storage_of_spec(s3_place)
    with _operator(place) as operator:
        _create(place, operator, namespace)
        _write(place, namespace)
        digest = _tables(place, namespace).digest()
        _prepare(client, namespace, told)
        spec = _spec(place, namespace, told)
        _begin(client, BACKUPS, spec, namespace)
        status = _ended(client, BACKUPS, namespace)
        assert "Complete" == status["phase"], status
        assert "backupmeta" in {each.key for page in s3_place.storage().pages() for each in page}

        delete_cluster(client, "basic", namespace)
        _delete_volumes(client, namespace)
        _create(place, operator, namespace)
        assert [] == _tables(place, namespace).schemas()
        _begin(client, RESTORES, spec, namespace)
        restored = _ended(client, RESTORES, namespace)
        assert ("Complete", status["commitTs"]) == (restored["phase"], restored["commitTs"]), restored
        assert digest == _tables(place, namespace).digest()
        pods = [each.decode() for each in client.list_page(PODS, namespace).items]
        assert CANARY not in str([client.get(each, "demo", namespace).decode() for each in (BACKUPS, RESTORES)] + pods)
    assert CANARY not in operator.said


@contextlib.contextmanager
def _operator(place: Place) -> Iterator[Operator]:
    with operators.running(place.new_log(), place.environment(), _IMAGE) as operator:
        yield operator


def _create(place: Place, operator: Operator, namespace: str) -> None:
    create_cluster(place.client, sample("basic"), namespace)
    await_ready(place, operator, "basic", namespace, within=60.0)


def _write(place: Place, namespace: str) -> None:
    place.data_plane.sql().execute(SqlLogin(f"basic-tidb.{namespace}", 4000, "root"), _DATA)


def _tables(place: Place, namespace: str) -> Tables:
    pd = place.data_plane.pd_cluster(namespace, "basic")
    assert pd is not None
    return pd.tables


def _prepare(client: Client, namespace: str, told: StorageOfSpec) -> None:
    """The rights of the pods, as the sample has them, and the keys of the bucket."""
    of_pods = [each for each in manifests.read(SAMPLES / "backup.yaml") if each.name == _ACCOUNT]
    for each in of_pods:
        each.body["metadata"]["namespace"] = namespace
        for subject in each.body.get("subjects", ()):
            subject["namespace"] = namespace
    manifests.apply(client, of_pods)
    client.create(SECRETS, {"metadata": {"name": SECRET}, "stringData": told.keys}, namespace)


def _spec(place: Place, namespace: str, told: StorageOfSpec) -> Json:
    kubeconfig = {"name": KUBECONFIG, "value": str(place.kubeconfig(namespace, _ACCOUNT))}
    return {"br": {"cluster": "basic"}, **told.storage, "env": [*told.env, kubeconfig]}


def _begin(client: Client, resource: Resource, spec: Json, namespace: str) -> None:
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "demo"}, "spec": spec}
    client.create(resource, body, namespace)


def _ended(client: Client, resource: Resource, namespace: str) -> Json:
    def status() -> Json:
        found: Json = client.get(resource, "demo", namespace).decode().get("status") or {}
        return found

    eventually(lambda: status().get("phase") in ("Complete", "Failed"), 60.0, lambda: yaml.safe_dump(status()))
    return status()


def _delete_volumes(client: Client, namespace: str) -> None:
    for claim in client.list_page(PERSISTENT_VOLUME_CLAIMS, namespace).items:
        volume = claim.decode()["spec"]["volumeName"]
        client.delete(PERSISTENT_VOLUME_CLAIMS, claim.metadata.name, namespace)
        eventually(lambda: not exists(client, PERSISTENT_VOLUME_CLAIMS, claim.metadata.name, namespace))  # noqa: B023
        client.delete(PERSISTENT_VOLUMES, volume)
