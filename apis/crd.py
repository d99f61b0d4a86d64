"""CustomResourceDefinitions, generated from the models: `python -m apis.crd [--check]`.

The schema is structural and never tighter than v1.6's, so that what v1.6 stored stays valid (api/crds.md 2).
Descriptions are short, and Kubernetes sub-trees keep unknown fields: a definition stays small enough for a client-side
apply, and pod fields newer than this code survive. What v1.6 checks beyond its schema is checked by `apis.validation`.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import inspect

from apis.backup_schedules import BackupSchedule
from apis.backups import Backup
from apis.compact_backups import CompactBackup
from apis.dashboards import TidbDashboard
from apis.descriptions import describe
from apis.dmcluster import DMCluster
from apis.initializers import TidbInitializer
from apis.monitors import TidbMonitor
from apis.ng_monitorings import TidbNGMonitoring
from apis.restores import Restore
from apis.shared import Json, Metadata, Model
from apis.tidbcluster import TidbCluster
from ports.structs import type_info

GROUP = "pingcap.com"
VERSION = "v1alpha1"
DIRECTORY = Path(__file__).resolve().parents[1] / "manifests" / "crds"

_HEADER = "# Generated from the models by `python -m apis.crd`. Change apis/, not this file.\n"


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale subresource of a CRD, as JSON paths to numbers and to the text of a label selector."""

    spec_replicas: str
    status_replicas: str
    selector: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; a priority above 0 means only with `-o wide`."""

    name: str
    type: str
    json_path: str
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """The parts of a CRD other than the schema (api/crds.md 1, 3).

    Without `status_subresource` the status is written with the object, as by v1.6's `backup-manager`: users' Roles
    allow no more than that (backup.md 8).
    """

    model: type[Model]
    plural: str
    short_names: tuple[str, ...]
    columns: tuple[Column, ...] = ()
    status_subresource: bool = True
    scale: Scale | None = None

    @property
    def name(self) -> str:
        """The kind, which is the model's name."""
        return self.model.__name__

    @property
    def file_name(self) -> str:
        """The name of the generated file."""
        return f"{GROUP}_{self.plural}.yaml"


_AGE = Column("Age", "date", ".metadata.creationTimestamp")


def _of(condition: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{condition}")].{field}'


_OF_JOBS = (
    # the operator's own columns follow v1.6's; the last step is the current one
    Column("Step", "string", ".status.progresses[-1:].step", priority=1),
    Column("Percent", "number", ".status.progresses[-1:].progress", priority=1),
    Column("Invalid", "string", _of("Invalid", "message"), priority=1),
    Column("LastRetry", "string", _of("RetryFailed", "message"), priority=1),
    Column("Failure", "string", _of("Failed", "message"), priority=1),
)
TIDB_CLUSTER = Kind(
    model=TidbCluster,
    plural="tidbclusters",
    short_names=("tc",),
    scale=Scale(".spec.tidb.replicas", ".status.tidb.statefulSet.replicas", ".status.tidb.selector"),
    columns=(
        Column("Ready", "string", _of("Ready", "status")),
        Column("PD", "string", ".status.pd.image"),
        Column("Storage", "string", ".spec.pd.requests.storage"),
        Column("Ready", "integer", ".status.pd.statefulSet.readyReplicas"),
        Column("Desire", "integer", ".spec.pd.replicas"),
        Column("TiKV", "string", ".status.tikv.image"),
        Column("Storage", "string", ".spec.tikv.requests.storage"),
        Column("Ready", "integer", ".status.tikv.statefulSet.readyReplicas"),
        Column("Desire", "integer", ".spec.tikv.replicas"),
        Column("TiDB", "string", ".status.tidb.image"),
        Column("Ready", "integer", ".status.tidb.statefulSet.readyReplicas"),
        Column("Desire", "integer", ".spec.tidb.replicas"),
        Column("Status", "string", _of("Ready", "message"), priority=1),
        _AGE,
        # beyond v1.6's columns: the reason, which docs/reasons/ explains
        Column("Reason", "string", _of("Progressing", "reason"), priority=1),
    ),
)
BACKUP = Kind(
    model=Backup,
    plural="backups",
    short_names=("bk",),
    status_subresource=False,
    columns=(
        Column("Type", "string", ".spec.backupType"),
        Column("Mode", "string", ".spec.backupMode"),
        Column("Status", "string", ".status.phase"),
        Column("BackupPath", "string", ".status.backupPath"),
        Column("BackupSize", "string", ".status.backupSizeReadable"),
        Column("IncrementalBackupSize", "string", ".status.incrementalBackupSizeReadable", priority=10),
        Column("CommitTS", "string", ".status.commitTs"),
        Column("LogTruncateUntil", "string", ".status.logSuccessTruncateUntil"),
        Column("Started", "date", ".status.timeStarted", priority=1),
        Column("Completed", "date", ".status.timeCompleted", priority=1),
        Column("TimeTaken", "string", ".status.timeTaken"),
        _AGE,
        *_OF_JOBS,
        Column("Synced", "date", ".status.timeSynced", priority=1),
    ),
)
RESTORE = Kind(
    model=Restore,
    plural="restores",
    short_names=("rt",),
    status_subresource=False,
    columns=(
        Column("Status", "string", ".status.phase"),
        Column("Started", "date", ".status.timeStarted", priority=1),
        Column("Completed", "date", ".status.timeCompleted", priority=1),
        Column("TimeTaken", "string", ".status.timeTaken"),
        Column("CommitTS", "string", ".status.commitTs"),
        _AGE,
        *_OF_JOBS,
    ),
)
BACKUP_SCHEDULE = Kind(
    model=BackupSchedule,
    plural="backupschedules",
    short_names=("bks",),
    status_subresource=False,
    columns=(
        Column("Schedule", "string", ".spec.schedule"),
        Column("MaxBackups", "integer", ".spec.maxBackups"),
        Column("MaxReservedTime", "string", ".spec.maxReservedTime"),
        Column("LastBackup", "string", ".status.lastBackup", priority=1),
        Column("LastBackupTime", "date", ".status.lastBackupTime", priority=1),
        _AGE,
        # the operator's own columns follow v1.6's
        Column("Active", "string", _of("Active", "status")),
        Column("LastComplete", "string", _of("LastBackupComplete", "status")),
        Column("Next", "string", _of("Active", "message"), priority=1),
        Column("Last", "string", _of("LastBackupComplete", "message"), priority=1),
    ),
)
COMPACT_BACKUP = Kind(
    model=CompactBackup,
    plural="compactbackups",
    short_names=("cpbk",),
    status_subresource=False,
    columns=(
        Column("Status", "string", ".status.state"),
        Column("EndTs", "string", ".status.endTs"),
        Column("Progress", "string", ".status.progress"),
        Column("Message", "string", ".status.message"),
        _AGE,
    ),
)
DM_CLUSTER = Kind(
    model=DMCluster,
    plural="dmclusters",
    short_names=("dc",),
    columns=(
        Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Master", "string", ".status.master.image"),
        Column("Storage", "string", ".spec.master.storageSize"),
        Column("Ready", "integer", ".status.master.statefulSet.readyReplicas"),
        Column("Desire", "integer", ".spec.master.replicas"),
        Column("Worker", "string", ".status.worker.image"),
        Column("Storage", "string", ".spec.worker.storageSize"),
        # v1.6 declares this number as a string
        Column("Ready", "string", ".status.worker.statefulSet.readyReplicas"),
        Column("Desire", "integer", ".spec.worker.replicas"),
        Column("Status", "string", '.status.conditions[?(@.type=="Ready")].message', priority=1),
        _AGE,
        # beyond v1.6's columns: the reason, which docs/reasons/ explains
        Column("Reason", "string", '.status.conditions[?(@.type=="Progressing")].reason', priority=1),
    ),
)
TIDB_MONITOR = Kind(
    model=TidbMonitor,
    plural="tidbmonitors",
    short_names=("tm",),
    # v1.6 has no columns here
    columns=(
        Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Status", "string", '.status.conditions[?(@.type=="Progressing")].message', priority=1),
        _AGE,
    ),
)
TIDB_INITIALIZER = Kind(
    model=TidbInitializer,
    plural="tidbinitializers",
    short_names=("ti",),
    status_subresource=False,
    columns=(
        Column("Phase", "string", ".status.phase"),
        _AGE,
        Column("Status", "string", '.status.conditions[?(@.type=="Ready")].message', priority=1),
    ),
)
_READY = Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].status')
_MESSAGE = Column("Status", "string", '.status.conditions[?(@.type=="Ready")].message', priority=1)
TIDB_DASHBOARD = Kind(
    model=TidbDashboard, plural="tidbdashboards", short_names=("td",), columns=(_READY, _AGE, _MESSAGE)
)
TIDB_NG_MONITORING = Kind(
    model=TidbNGMonitoring, plural="tidbngmonitorings", short_names=("tngm",), columns=(_READY, _AGE, _MESSAGE)
)
KINDS: tuple[Kind, ...] = (
    TIDB_CLUSTER,
    DM_CLUSTER,
    BACKUP,
    RESTORE,
    BACKUP_SCHEDULE,
    COMPACT_BACKUP,
    TIDB_MONITOR,
    TIDB_INITIALIZER,
    TIDB_DASHBOARD,
    TIDB_NG_MONITORING,
)


def definition(kind: Kind, *, status_subresource: bool | None = None) -> Json:
    """The CustomResourceDefinition of a kind, a fresh tree.

    v1.6's CRD of TidbCluster has no subresources; with `status_subresource` False this one has none either.
    """
    described = schema(kind.model)
    describe(described, kind.model)
    version: Json = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": described},
    }
    if kind.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in kind.columns]
    if kind.status_subresource if status_subresource is None else status_subresource:
        version["subresources"] = {"status": {}} | _scale(kind)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": list(kind.short_names),
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _scale(kind: Kind) -> Json:
    if kind.scale is None:
        return {}
    paths = kind.scale
    scale = {
        "specReplicasPath": paths.spec_replicas,
        "statusReplicasPath": paths.status_replicas,
        "labelSelectorPath": paths.selector,
    }
    return {"scale": scale}


def schema(model: type[Model]) -> Json:
    """The structural OpenAPI v3 schema of a model, a fresh tree.

    Raises TypeError for a type that has no structural schema.
    """
    tree: Json = msgspec.json.decode(msgspec.json.encode(_schema(type_info(model))))
    return tree


def render(tree: Json) -> str:
    """A CRD as the text of its file. It begins a YAML document, because `helm show crds` puts no separator between
    files.
    """
    return _HEADER + yaml.safe_dump(tree, width=120, explicit_start=True)


def _column(column: Column) -> Json:
    tree: Json = {"name": column.name, "type": column.type, "jsonPath": column.json_path}
    if column.priority:
        tree["priority"] = column.priority
    return tree


def _schema(kind: inspect.Type) -> Mapping[str, Any]:  # noqa: PLR0911  (one line per type)
    match kind:
        case inspect.Metadata():
            return _annotated(kind)
        case inspect.UnionType():
            return _union(kind)
        case inspect.StructType():
            return _struct(kind)
        case inspect.DictType():
            return _dict(kind)
        case inspect.ListType():
            return {"type": "array", "items": _schema(kind.item_type)}
        case inspect.IntType():
            bounds = {"minimum": kind.ge, "maximum": kind.le}
            return {"type": "integer", **{name: bound for name, bound in bounds.items() if bound is not None}}
        case inspect.LiteralType():
            return {"type": "string", "enum": list(kind.values)}
    return _scalar(kind)


_SCALARS: Mapping[type[inspect.Type], str] = {
    inspect.StrType: "string",
    inspect.BoolType: "boolean",
    inspect.FloatType: "number",
}


def _scalar(kind: inspect.Type) -> Mapping[str, Any]:
    if type(kind) not in _SCALARS:
        raise TypeError(f"{kind} has no structural schema")
    return {"type": _SCALARS[type(kind)]}


def _annotated(kind: inspect.Metadata) -> Mapping[str, Any]:
    extra = kind.extra_json_schema or {}
    if _is_schemaless(extra):
        return extra
    return {**_schema(kind.type), **extra}


def _is_schemaless(extra: Mapping[str, Any]) -> bool:
    """True if the annotation says all there is: a value of more than one type has no `type`."""
    return bool(extra.get("x-kubernetes-int-or-string") or extra.get("x-kubernetes-preserve-unknown-fields"))


def _union(kind: inspect.UnionType) -> Mapping[str, Any]:
    """None is not a value: the key is left out."""
    choices = [choice for choice in kind.types if not isinstance(choice, inspect.NoneType)]
    if len(choices) != 1:
        raise TypeError(f"a value of several types needs an annotation that describes it: {kind}")
    return _schema(choices[0])


def _struct(kind: inspect.StructType) -> Mapping[str, Any]:
    if kind.cls is Metadata:
        return {"type": "object"}
    tree: dict[str, Any] = {
        "type": "object",
        "properties": {field.encode_name: _schema(field.type) for field in kind.fields},
    }
    required = sorted(field.encode_name for field in kind.fields if field.required)
    if required:
        tree["required"] = required
    return tree


def _dict(kind: inspect.DictType) -> Mapping[str, Any]:
    if isinstance(kind.value_type, inspect.AnyType):
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "additionalProperties": _schema(kind.value_type)}


def main(arguments: Sequence[str], directory: Path = DIRECTORY) -> int:
    """Write the files, or with `--check` compare them; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m apis.crd", description="Generate the CRDs from the models.")
    parser.add_argument("--check", action="store_true", help="compare the files with the models, write nothing")
    check = parser.parse_args(arguments).check
    stale = [kind.file_name for kind in KINDS if _current(directory / kind.file_name) != render(definition(kind))]
    if check and stale:
        names = ", ".join(stale)
        sys.stderr.write(f"{directory}: {names} differs from the models in apis/; run `python -m apis.crd`\n")
        return 1
    if not check:
        directory.mkdir(parents=True, exist_ok=True)
        for kind in KINDS:
            (directory / kind.file_name).write_text(render(definition(kind)), encoding="utf-8")
    return 0


def _current(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
