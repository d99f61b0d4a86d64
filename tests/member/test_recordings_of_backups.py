"""The Jobs and claims of Backups and Restores are those that a live v1.6 made, by field (backup.md 3.11, 4.5)."""

import json
import re
from typing import Any

import pytest
from msgspec import structs

from apis.backup_defaulting import with_backup_defaults, with_compact_defaults, with_restore_defaults
from apis.backups import Backup
from apis.compact_backups import CompactBackup
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.log_backups import START, STOP, TRUNCATE
from apis.restores import Restore
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.backups import jobs
from member.backups import jobs as rt
from member.backups.environment import Secrets
from member.backups.jobs import compaction_job
from member.backups.pods import ManagerSettings
from member.labels import RESTORING_TO_POINT_IN_TIME
from member.objects.config_map import CONFIG_FILE, same_toml
from member.tikv import desired
from tests.member.recordings import GOLDEN, differences

SETTINGS = ManagerSettings("pingcap/tidb-backup-manager:v1.6.6")
CERTIFICATE = {"ca.crt": "ca", "tls.crt": "crt", "tls.key": "key"}
SECRETS: Secrets = {
    "s3-keys": {"access_key": "AK", "secret_key": "SK"},
    "gcs-key": {"credentials": "{}"},
    "az-key": {"AZURE_STORAGE_ACCOUNT": "acct", "AZURE_STORAGE_KEY": "key"},
    "az-app": {"AZURE_CLIENT_ID": "id", "AZURE_CLIENT_SECRET": "sec", "AZURE_TENANT_ID": "ten"},
    "db-pass": {"password": "pw"},
    "safe-cluster-client-secret": CERTIFICATE,
    "safe-tidb-client-secret": CERTIFICATE,
}
ADDED = re.compile(
    r"/spec/(completionMode|completions|manualSelector|parallelism|podReplacementPolicy|suspend)"
    r"|/spec/selector/.*"
    r"|/(metadata|spec/template/metadata)/labels/(batch.kubernetes.io/)?(controller-uid|job-name)"
    r"|/spec/template/spec/dnsPolicy"
    r"|.*/terminationMessagePath|.*/terminationMessagePolicy"
    r"|/metadata/(annotations/.*|finalizers/.*)|/spec/volume(Mode|Name)"
    r"|/spec/template/spec/volumes/[^/]+/secret/defaultMode"
)
"""Additions of the API server and Kubernetes' controllers to a Job and to a claim."""
OURS = {
    "/spec/template/metadata/annotations/kubectl.kubernetes.io/last-applied-configuration": "left out",
    "/spec/template/spec/containers/0/env/BR_LOG_TO_TERM/value": "1 in place of U+0001",
}
"""Intended differences (docs/compat.md)."""
DEFAULT_CLASS = "/spec/storageClassName: recorded 'standard', not ours"
"""Additions of admission to a claim without a class."""


def recorded(name: str) -> dict[str, Json]:
    """The objects of a recording, by kind and name."""
    path = GOLDEN / f"{name}.json"
    if not path.exists():
        pytest.skip("the recordings of v1.6 are not beside the repository")
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in json.loads(path.read_text())["items"]}


def unexplained(there: Json, made: Json) -> list[str]:
    """The differences that nothing accounts for."""
    lines = [line for line in differences(there, made) if line != DEFAULT_CLASS]
    return [line for line in lines if not ADDED.fullmatch(path := line.partition(": ")[0]) and path not in OURS]


def backups(name: str, *kinds: str) -> dict[str, tuple[Backup, TidbCluster | None]]:
    """The recorded Backups of some modes, each with its cluster."""
    items = recorded(name)
    found: dict[str, Any] = {}
    for item in items.values():
        if item["kind"] == "Backup":
            backup = with_backup_defaults(decode(item, Backup))
            mode = backup.spec.backup_mode if backup.spec.br else "export"
            cluster = items.get(f"TidbCluster/{backup.spec.br.cluster}") if backup.spec.br else None
            if mode in kinds:
                found[backup.metadata.name] = backup, cluster and with_defaults(decode(cluster, TidbCluster))
    return found


@pytest.mark.parametrize("name", ["dev-backup", "dev-tls", "dev-bklife", "dev-schedule"])
def test_jobs_of_snapshots_equal_v1_6(name: str) -> None:
    items, found = recorded(name), backups(name, "snapshot")
    assert found
    made = {each: jobs.snapshot_job(backup, tc, SECRETS, SETTINGS) for each, (backup, tc) in found.items() if tc}
    assert {} == {each: lines for each, job in made.items() if (lines := unexplained(items[f"Job/backup-{each}"], job))}
    assert found.keys() == made.keys()


@pytest.mark.parametrize("name", ["dev-backup", "dev-bklife"])
def test_jobs_and_claims_of_exports_equal_v1_6(name: str) -> None:
    items, found = recorded(name), backups(name, "export")
    assert found
    for each, (backup, _) in found.items():
        job, claim = jobs.export_job(backup, SECRETS, SETTINGS), jobs.export_claim(backup)
        assert [] == unexplained(items[f"Job/backup-{each}"], job)
        assert [] == unexplained(items[f"PersistentVolumeClaim/{claim['metadata']['name']}"], claim)


def test_cleaning_jobs_equal_v1_6() -> None:
    items, found = recorded("dev-bklife.deleting"), backups("dev-bklife", "snapshot", "export")
    cleaned = [each for each in found if f"Job/clean-{each}" in items]
    assert {"clean-me", "fail-me", "expo"} == {*cleaned}
    for each in cleaned:
        job = jobs.clean_job(found[each][0], SECRETS, SETTINGS)
        assert [] == unexplained(items[f"Job/clean-{each}"], job)


@pytest.mark.parametrize(
    ("name", "backup", "commands"),
    [("dev-backup", "log-run", [START]), ("dev-bklife.gone", "logs", [START, TRUNCATE, STOP])],
)
def test_jobs_of_log_backups_equal_v1_6(name: str, backup: str, commands: list[str]) -> None:
    items, found = recorded(name), backups(name, "log")[backup]
    spec = structs.replace(found[0].spec, log_truncate_until="2026-01-02T00:00:00Z")  # since taken back
    log, tc = structs.replace(found[0], spec=spec), found[1]
    assert tc is not None
    for command in commands:
        made = jobs.log_job(log, tc, SECRETS, SETTINGS, command)
        assert [] == unexplained(items[f"Job/backup-{backup}-{command}"], made)
    assert len(commands) == sum(each.startswith(f"Job/backup-{backup}") for each in items)
    if f"Job/stop-{backup}" in items:
        assert [] == unexplained(items[f"Job/stop-{backup}"], jobs.stop_job(log, tc, SECRETS, SETTINGS))
        assert [] == unexplained(items[f"Job/clean-{backup}"], jobs.clean_job(log, SECRETS, SETTINGS))


def restores(name: str) -> dict[str, tuple[Restore, TidbCluster | None]]:
    """The recorded Restores, each with its cluster."""
    items = recorded(name)
    found: dict[str, tuple[Restore, TidbCluster | None]] = {}
    for item in items.values():
        if item["kind"] == "Restore":
            restore = with_restore_defaults(decode(item, Restore))
            cluster = items.get(f"TidbCluster/{restore.spec.br.cluster}") if restore.spec.br else None
            found[restore.metadata.name] = restore, with_defaults(decode(cluster, TidbCluster)) if cluster else None
    return found


@pytest.mark.parametrize("name", ["dev-restore", "dev-bklife.done"])
def test_jobs_and_claims_of_restores_equal_v1_6(name: str) -> None:
    items, found = recorded(name), restores(name)
    for each, (restore, tc) in found.items():
        made = rt.restore_job(restore, tc, SECRETS, SETTINGS) if tc else rt.import_job(restore, SECRETS, SETTINGS)
        assert [] == unexplained(items[f"Job/restore-{each}"], made)
        if tc is None:
            claim = rt.import_claim(restore)
            assert [] == unexplained(items[f"PersistentVolumeClaim/{claim['metadata']['name']}"], claim)
        if f"Job/restore-{each}-prune" in items:
            assert tc
            assert [] == unexplained(items[f"Job/restore-{each}-prune"], rt.prune_job(restore, tc, SECRETS, SETTINGS))
    expected = {"dev-restore": {"br-full", "import", "pitr", "table-gcs"}, "dev-bklife.done": {"prune-me"}}
    assert expected[name] == {*found}


def test_the_job_of_a_compaction_equals_v1_6() -> None:
    items = recorded("dev-restore")
    compact = with_compact_defaults(decode(items["CompactBackup/compact-1"], CompactBackup))
    tc = with_defaults(decode(items["TidbCluster/vault"], TidbCluster))
    assert [] == unexplained(items["Job/compact-1"], compaction_job(compact, tc, SECRETS, SETTINGS))


def test_tikv_keeps_its_garbage_for_a_restore_to_a_point_in_time_as_in_v1_6() -> None:
    items = recorded("dev-restore")
    tc = with_defaults(decode(items["TidbCluster/vault"], TidbCluster))
    annotations = tc.metadata.annotations | {RESTORING_TO_POINT_IN_TIME: "true"}
    restoring = structs.replace(tc, metadata=structs.replace(tc.metadata, annotations=annotations))
    there, made = items["ConfigMap/vault-tikv"]["data"][CONFIG_FILE], desired.content(restoring).data[CONFIG_FILE]
    assert same_toml(there, made)
    assert not same_toml(there, desired.content(tc).data[CONFIG_FILE])
