"""The controllers show no credential either: not in Jobs, claims, statuses, events or logs, whatever is wrong."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.typing import EventDict

from kube.objects import Json
from kube.resources import BACKUPS, EVENTS, JOBS, PERSISTENT_VOLUME_CLAIMS, RESTORES, Resource
from tests.controllers.backup.backups_world import NAMESPACE, BackupsWorld

CANARY = "canary7Qx"
HELD = {
    "s3": ("access_key", "secret_key"),
    "gcs": ("credentials",),
    "azure": ("AZURE_STORAGE_KEY", "AZURE_CLIENT_SECRET", "AZURE_CLIENT_ID"),
    "tidb": ("password",),
    "tls": ("tls.crt", "tls.key", "ca.crt"),
}
STORAGES: dict[str, Json] = {
    "s3": {"s3": {"provider": "aws", "bucket": "b", "path": "b/x.tgz", "secretName": "s3"}},
    "gcs": {"gcs": {"projectId": "p", "bucket": "b", "path": "b/x.tgz", "secretName": "gcs"}, "s3": None},
    "azure": {"azblob": {"container": "c", "secretName": "azure", "storageAccount": "a"}, "s3": None},
}
ACCESS = {"host": "tidb", "secretName": "tidb", "tlsClientSecretName": "tls"}


@pytest.fixture
def log() -> Iterator[list[str]]:
    lines: list[str] = []

    def keep(_logger: object, _method: str, event: EventDict) -> EventDict:
        lines.append(json.dumps(event, default=repr))
        raise structlog.DropEvent

    structlog.configure(processors=[structlog.processors.format_exc_info, keep])
    yield lines
    structlog.reset_defaults()


def seen(world: BackupsWorld, log: list[str]) -> str:
    """Everything but the Secrets."""
    kinds = (BACKUPS, RESTORES, JOBS, EVENTS, PERSISTENT_VOLUME_CLAIMS)
    found = [each.decode() for kind in kinds for each in world.admin.list_page(kind, NAMESPACE).items]
    return json.dumps(found) + "\n".join(log)


@pytest.mark.slow
@pytest.mark.parametrize("lacks", [None, *HELD])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("resource", [BACKUPS, RESTORES], ids=["backup", "restore"])
def test_no_credential_is_in_what_the_controllers_write(
    resource: Resource, storage: str, lacks: str | None, log: list[str]
) -> None:
    world = BackupsWorld(resource)
    try:
        for name, keys in HELD.items():
            # one Secret lacks its first key: no value of the others may be shown
            present = keys[1:] if name == lacks else keys
            world.add_secret(name, **dict.fromkeys(present, f"{CANARY}-{name}"))
        access = {"from" if resource is BACKUPS else "to": ACCESS}
        given: dict[str, Any] = {**STORAGES[storage], **access}
        world.add(**given, cleanPolicy="Delete") if resource is BACKUPS else world.add(**given)
        world.add("archive", **given, br=None, storageSize="1Gi")
        world.run(5)
        for job in world.jobs():
            world.end(job)
        assert lacks or world.jobs()
        world.run(700)
        world.delete()
        told = seen(world, log)
        assert "demo" in told
        assert CANARY not in told
        assert base64.b64encode(CANARY.encode()).decode()[:11] not in told
    finally:
        world.stop()
