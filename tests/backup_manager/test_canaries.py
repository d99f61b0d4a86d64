"""No argument, log, status, event or Job ever shows a credential, whatever fails.

The Jobs are the controllers'; the command's environment is built from the Secrets, as by a kubelet.
"""

import base64
import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.typing import EventDict

from apis.backup_defaulting import with_backup_defaults, with_restore_defaults
from apis.backups import Backup
from apis.decoding import decode
from apis.restores import Restore
from backup_manager.child_process import CannotStart, OnLine
from backup_manager.commands import job
from backup_manager.database import DatabaseError
from backup_manager.main import exit_code
from backup_manager.redaction import Secrets
from backup_manager.storage.errors import AccessDenied, StorageError, Unreachable
from kube.objects import Json
from kube.resources import BACKUPS, RESTORES, Resource
from member.backups import jobs
from member.backups.pods import ManagerSettings
from ports.stopping import Stop
from tests.apis.clusters import cluster, minimal
from tests.backup_manager.dumping import FILES, Tools
from tests.backup_manager.storage.fakes import WHERE
from tests.backup_manager.test_exports import archive_of
from tests.backup_manager.worlds import NAME, NAMESPACE, World, meta_bytes

_NUMBERS = iter(range(1_000_000))


def canary() -> str:
    """A unique value with characters that URLs escape."""
    return f"canary/{next(_NUMBERS)}+Qx="


GOOGLE = {
    "type": "service_account",
    "private_key_id": canary(),
    "private_key": f"-----BEGIN PRIVATE KEY-----\n{canary()}\n{canary()}\n-----END PRIVATE KEY-----\n",
}
KEPT: dict[str, dict[str, str]] = {
    "s3": {"access_key": canary(), "secret_key": canary()},
    "gcs": {"credentials": json.dumps(GOOGLE)},
    "azure-key": {"AZURE_STORAGE_ACCOUNT": "account", "AZURE_STORAGE_KEY": canary()},
    "azure-client": {
        "AZURE_STORAGE_ACCOUNT": "account",
        "AZURE_CLIENT_ID": "client",
        "AZURE_CLIENT_SECRET": canary(),
        "AZURE_TENANT_ID": "tenant",
    },
    "tidb": {"password": canary()},
}
"""All Secrets, by name."""

S3 = {"provider": "aws", "bucket": "bucket", "prefix": "p", "path": "bucket/p/x.tgz", "secretName": "s3"}
GCS = {"projectId": "id", "bucket": "bucket", "prefix": "p", "path": "bucket/p/x.tgz", "secretName": "gcs"}
STORAGES: dict[str, Json] = {
    "s3": {"s3": S3},
    "gcs": {"gcs": GCS},
    "azure-key": {"azblob": {"container": "c", "prefix": "p", "secretName": "azure-key"}},
    "azure-client": {"azblob": {"container": "c", "prefix": "p", "secretName": "azure-client"}},
}
ACCESS = {"host": "tidb", "secretName": "tidb"}
BR = {"br": {"cluster": "basic"}}


def canaries() -> set[str]:
    """All canaries, in every spelling."""
    texts = {value for held in KEPT.values() for value in held.values() if "canary" in value}
    texts |= {GOOGLE["private_key_id"], *(line for line in GOOGLE["private_key"].splitlines() if "canary" in line)}
    texts.discard(KEPT["gcs"]["credentials"])
    return texts | {base64.b64encode(text.encode()).decode() for text in texts}


@dataclass(frozen=True)
class Failure:
    """A failure of the `number`th call; `None` means no failure."""

    where: str | None
    number: int
    kind: int

    def strikes(self, where: str, number: int) -> bool:
        return self.where == where and number >= self.number


class Leaky(Tools):
    """Programs that print everything they know, and may fail."""

    def __init__(self, world: World, failure: Failure) -> None:
        super().__init__()
        self._world = world
        self._failure = failure

    def run(self, command: Sequence[str], environ: Mapping[str, str], on_line: OnLine, stop: Stop) -> int:
        number = len(self.commands) + 1
        for name, value in environ.items():
            on_line(f"[ERROR] {name}={value}", number % 2 == 0)
        if self._failure.strikes("tool", number):
            self.commands.append(command)
            if self._failure.kind == 0:
                raise CannotStart(f"cannot start {command[0]} with {environ}")
            return self._failure.kind
        if command[0].endswith("br"):
            self.commands.append(command)
            self._world.storage.objects |= {"backupmeta": meta_bytes(), "sst": b"12345"}
            return 0
        return super().run(command, environ, on_line, stop)


def environ_of(made: Json) -> dict[str, str]:
    """The environment that a kubelet gives the container."""
    found = {}
    for each in made["spec"]["template"]["spec"]["containers"][0]["env"]:
        reference = each.get("valueFrom", {}).get("secretKeyRef")
        found[each["name"]] = KEPT[reference["name"]][reference["key"]] if reference else each.get("value", "")
    return found


@contextmanager
def logged(secrets: Secrets) -> Iterator[list[str]]:
    """The log lines, through the command's processors."""
    lines: list[str] = []

    def keep(_logger: object, _method: str, event: EventDict) -> EventDict:
        lines.append(json.dumps(event, default=repr))
        raise structlog.DropEvent

    structlog.configure(processors=[structlog.processors.format_exc_info, secrets.redact, keep])
    try:
        yield lines
    finally:
        structlog.reset_defaults()


def leaking(world: World, failure: Failure, environ: Mapping[str, str]) -> None:
    """Make storage and TiDB raise errors that quote their input."""
    told = " ".join(environ.values())
    calls = {"storage": 0, "tidb": 0}

    def fail(verb: str) -> None:
        calls["storage"] += 1
        if failure.strikes("storage", calls["storage"]):
            meanings: list[type[StorageError]] = [StorageError, AccessDenied, Unreachable]
            raise meanings[failure.kind % 3](verb, WHERE, f"it said {told}")

    called = world.tidb._called

    def fail_in_tidb(what: str) -> None:
        calls["tidb"] += 1
        if failure.strikes("tidb", calls["tidb"]):
            raise DatabaseError(f"root:{told}@tidb said no")
        called(what)

    world.storage.fail = fail
    world.tidb._called = fail_in_tidb  # type: ignore[method-assign]


Build = Callable[[Json], Json]


def _backup(spec: Json) -> Backup:
    body = {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec}
    return with_backup_defaults(decode(body, Backup))


def _restore(spec: Json) -> Restore:
    body = {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec}
    return with_restore_defaults(decode(body, Restore))


_TC = cluster(minimal())
_SETTINGS = ManagerSettings("manager")


def _logging(spec: Json) -> Json:
    return jobs.log_job(_backup(spec), _TC, KEPT, _SETTINGS, "log-start")


def _restoring(spec: Json) -> Json:
    return jobs.restore_job(_restore(spec), _TC, KEPT, _SETTINGS)


def _pruning(spec: Json) -> Json:
    return jobs.prune_job(_restore(spec), _TC, KEPT, _SETTINGS)


COMMANDS: dict[str, tuple[Resource, Json, Build]] = {
    "backup": (BACKUPS, {**BR, "from": ACCESS}, lambda spec: jobs.snapshot_job(_backup(spec), _TC, KEPT, _SETTINGS)),
    "log": (BACKUPS, BR | {"from": ACCESS, "backupMode": "log"}, _logging),
    "clean": (BACKUPS, BR, lambda spec: jobs.clean_job(_backup(spec), KEPT, _SETTINGS)),
    "export": (BACKUPS, {"from": ACCESS}, lambda spec: jobs.export_job(_backup(spec), KEPT, _SETTINGS)),
    "restore": (
        RESTORES,
        {**BR, "to": ACCESS},
        _restoring,
    ),
    "prune": (RESTORES, {**BR, "to": ACCESS}, _pruning),
    "import": (RESTORES, {"to": ACCESS}, lambda spec: jobs.import_job(_restore(spec), KEPT, _SETTINGS)),
}

FAILURES = st.builds(Failure, st.sampled_from([None, "tool", "storage", "tidb"]), st.integers(1, 6), st.integers(0, 4))


def seen(command: str, storage: str, failure: Failure, volume: Path) -> dict[str, str]:
    """Run it; return everything that is visible, by place."""
    resource, spec, build = COMMANDS[command]
    spec = spec | STORAGES[storage] | {"storageSize": "1Gi"}
    made = build(spec)
    world = World()
    world.environ = environ_of(made)
    path = f"{'gcs' if storage == 'gcs' else 's3'}://bucket/p/x.tgz"
    status: Json = {"phase": "Scheduled"} if command != "clean" else {"phase": "Clean", "backupPath": "s3://bucket/p"}
    body = {"s3": None, "br": None} | spec
    (world.backup if resource is BACKUPS else world.restore)(status=status, **body)
    if command == "import":
        world.storage.objects |= {path.rpartition("/")[2]: archive_of(FILES)}
    elif command in ("restore", "prune", "clean"):
        world.storage.objects |= {"backupmeta": meta_bytes(), "sst": b"12345"}
    leaking(world, failure, world.environ)
    tools = Leaky(world, failure)
    outside = replace(world.outside(), launcher=tools, volume=volume)
    errors: list[str] = []
    argv = made["spec"]["template"]["spec"]["containers"][0]["args"]
    with logged(Secrets(world.environ)) as log:
        exit_code(lambda: job(argv)(outside), world.environ, errors.append)
    return {
        "Job": json.dumps(made),
        "status": json.dumps(world.read(resource)),
        "log": "\n".join(log),
        "error": "\n".join(errors),
        "arguments": json.dumps([list(each) for each in tools.commands]),
    }


def _cases() -> list[tuple[str, str]]:
    archives = {"export", "import"}
    return [(command, each) for command in COMMANDS for each in STORAGES if command not in archives or each in S3_GCS]


S3_GCS = ("s3", "gcs")


@pytest.mark.slow
@pytest.mark.parametrize(("command", "storage"), _cases())
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(failure=FAILURES)
def test_no_credential_is_seen(command: str, storage: str, failure: Failure, tmp_path: Path) -> None:
    found = seen(command, storage, failure, tmp_path)
    leaks = [(where, text) for where, all_ in found.items() for text in canaries() if text in all_]
    assert [] == leaks


def test_the_programs_really_print_credentials(tmp_path: Path) -> None:
    found = seen("backup", "s3", Failure(None, 1, 0), tmp_path)
    assert "AWS_SECRET_ACCESS_KEY=[redacted]" in found["log"]
    failed = seen("export", "gcs", Failure("tool", 1, 3), tmp_path)
    assert "BACKUP_MANAGER_PASSWORD=[redacted]" in failed["status"]


def test_a_traceback_shows_no_credential() -> None:
    secrets = Secrets({"AWS_SECRET_ACCESS_KEY": KEPT["s3"]["secret_key"]})
    with logged(secrets) as log:
        try:
            raise ValueError(KEPT["s3"]["secret_key"])
        except ValueError:
            structlog.get_logger().exception("unexpected", trace=traceback.format_exc())
    assert KEPT["s3"]["secret_key"] not in log[0]


def test_a_log_line_has_printable_characters_only() -> None:
    redact = Secrets({}).redact
    event = redact(None, "info", {"event": "output", "line": "\x1b[2J\u202e", "words": ["\x9b31m"], "code": 1})
    assert {"event": "output", "line": "\ufffd[2J\ufffd", "words": ["\ufffd31m"], "code": 1} == event
