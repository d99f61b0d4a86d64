"""Export and import end to end: controllers, `backup-manager`, Dumpling and TiDB Lightning, a volume, a bucket."""

import pytest

from kube.resources import BACKUPS, RESTORES, SECRETS
from rehearsal.backup_storage import SANDBOX_S3
from tests.operator_world import NAMESPACE, OperatorWorld
from tests.sandbox.test_backups import basic, create, ended, job_pod, phase, sql, tables

__all__ = ["basic"]

BUCKET = {"provider": "ceph", "endpoint": SANDBOX_S3, "bucket": "b"}
ACCESS = {"host": "basic-tidb", "secretName": "password"}


@pytest.mark.slow
@pytest.mark.rule("7.9")
def test_imports_an_export_although_pods_are_killed(basic: OperatorWorld) -> None:
    sql(basic, "CREATE TABLE shop.empty (id INT PRIMARY KEY)", "ALTER USER 'root'@'%' IDENTIFIED BY 'a''b'")
    basic.admin.create(SECRETS, {"metadata": {"name": "password"}, "stringData": {"password": "a'b"}}, NAMESPACE)
    before = tables(basic).digest()
    retries = {"backoffRetryPolicy": {"minRetryDuration": "10s"}}
    create(basic, BACKUPS, {"from": ACCESS, "s3": BUCKET | {"prefix": "p"}, "storageSize": "1Gi"} | retries)
    basic.run_until(lambda: phase(basic, BACKUPS) == "Running")
    basic.world.data_plane.crash(NAMESPACE, job_pod(basic, "backup-demo"))
    status = ended(basic, BACKUPS, within=300)
    assert ("Complete", 1) == (status["phase"], len(status.get("backoffRetryStatus") or ())), status
    tables(basic).execute("DROP DATABASE shop")
    archive = {"s3": BUCKET | {"path": status["backupPath"]}}
    create(basic, RESTORES, {"to": ACCESS, "storageSize": "1Gi"} | archive)
    restored = ended(basic, RESTORES)
    assert ("Complete", status["commitTs"]) == (restored["phase"], restored["commitTs"]), restored
    assert before == tables(basic).digest()
