"""Backups and Restores for tests: built from the JSON a user would write, as the controllers build them."""

import json
from collections.abc import Iterator
from typing import Any

from apis.backup_defaulting import with_backup_defaults, with_compact_defaults, with_restore_defaults
from apis.backups import Backup
from apis.compact_backups import CompactBackup
from apis.decoding import decode
from apis.restores import Restore
from apis.shared import Json
from tests.apis.field_trees import SHARED

S3: Json = {"provider": "aws", "bucket": "lab", "prefix": "full", "secretName": "keys"}
ACCESS: Json = {"host": "basic-tidb", "secretName": "password"}


def tree(kind: str, spec: Json, *, status: Json | None = None, **metadata: Any) -> Json:
    """An object of a kind, `demo` in the namespace `ns`."""
    return {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": kind,
        "metadata": {"name": "demo", "namespace": "ns", **metadata},
        "spec": spec,
        "status": status or {},
    }


def by_br(**spec: Any) -> Json:
    """The spec of a backup or restore of everything by BR to S3, `spec` laid onto it."""
    return {"br": {"cluster": "basic"}, "s3": S3, **spec}


def backup(spec: Json, *, status: Json | None = None, **metadata: Any) -> Backup:
    """A Backup, decoded and defaulted."""
    return with_backup_defaults(decode(tree("Backup", spec, status=status, **metadata), Backup))


def restore(spec: Json, *, status: Json | None = None, **metadata: Any) -> Restore:
    """A Restore, decoded and defaulted."""
    return with_restore_defaults(decode(tree("Restore", spec, status=status, **metadata), Restore))


def compact(spec: Json, *, status: Json | None = None, **metadata: Any) -> CompactBackup:
    """A CompactBackup, decoded and defaulted."""
    return with_compact_defaults(decode(tree("CompactBackup", spec, status=status, **metadata), CompactBackup))


def recorded(kind: str) -> Iterator[tuple[str, Json]]:
    """The recorded specs of a kind for v1.6: set and name, object."""
    for path in sorted((SHARED / "golden").glob("dev-*.json")):
        if path.stem.count("."):  # a later step of the same set
            continue
        for item in json.loads(path.read_text(encoding="utf-8"))["items"]:
            if item["kind"] == kind:
                yield f"{path.stem}/{item['metadata']['name']}", item
