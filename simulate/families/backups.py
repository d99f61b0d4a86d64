"""The users' edits with Backups and Restores, to a bucket in the sandbox."""

from typing import Any

from rehearsal.backup_storage import SANDBOX_S3
from simulate.engine.plan import Edit, World
from simulate.engine.worlds import KEY, NAME

BUCKET = "backups"
_ACCOUNT = Edit(at=0.5, target="serviceaccounts/tidb-backup-manager", body={"automountServiceAccountToken": True})
_DATA = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, what TEXT)",
    "CREATE TABLE shop.prices (id INT PRIMARY KEY, what TEXT)",
    "INSERT INTO shop.orders VALUES (1, 'three apples'), (2, 'a pear')",
    "INSERT INTO shop.prices VALUES (1, 'ten')",
)


def statements(at: float, *texts: str) -> World:
    """The users' SQL statements."""
    return World(at=at, verb="sql", arguments={"cluster": KEY, "statements": list(texts)}, seconds=0.0)


def data() -> World:
    """Create two tables with rows."""
    return statements(0.5, *_DATA)


def account() -> Edit:
    """Create the ServiceAccount of the Jobs' pods."""
    return _ACCOUNT


def backup(at: float, name: str = "demo", prefix: str = "", /, **spec: Any) -> Edit:
    """Create a Backup whose Job is retried soon after a failure."""
    policy = {"backoffRetryPolicy": {"minRetryDuration": "10s"}}
    return Edit(at=at, target=f"backups.pingcap.com/{name}", body={"spec": to(prefix or name) | policy | spec})


def told(at: float, name: str = "demo", **spec: Any) -> Edit:
    """Change the command of a log backup."""
    return Edit(at=at, target=f"backups.pingcap.com/{name}", spec=spec)


def restore(at: float, name: str = "demo", prefix: str = "", /, **spec: Any) -> Edit:
    """Create a Restore whose failed pod is replaced."""
    given = to(prefix or name) | {"backoffLimit": 2} | spec
    return Edit(at=at, target=f"restores.pingcap.com/{name}", body={"spec": given})


def to(prefix: str) -> dict[str, Any]:
    """The cluster, and a place in the bucket."""
    s3 = {"provider": "ceph", "endpoint": SANDBOX_S3, "bucket": BUCKET, "prefix": prefix}
    return {"br": {"cluster": NAME}, "s3": s3}
