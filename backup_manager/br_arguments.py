"""BR's command line, exactly as v1.6 writes it (backup.md 7.6). Pure."""

from dataclasses import dataclass

from apis import log_backups, tso
from apis.backup_shared import BRConfig
from apis.backups import Backup
from apis.restores import Restore
from apis.storage_providers import StorageProvider
from backup_manager.places import given, storage_flags, storage_url

BR = "/var/lib/br-bin/br"
"""The path at which the init container installs it."""

_REPLICATION = ("--pitr-concurrency=1024", "--metadata-download-batch-size=512", "--retain-latest-mvcc-version")
"""The arguments of both steps of a replication restore (RPL-14)."""
_TLS = "/var/lib/cluster-client-tls"


class NoBR(Exception):
    """Raised for a spec without `br`, which names the cluster."""

    def __init__(self) -> None:
        super().__init__("spec.br is missing; it names the cluster that BR works on")


@dataclass(frozen=True, slots=True)
class PointInTime:
    """The target moment of a restore: a TSO, 0 for the latest; `phase` 1 or 2 is a step of a replication restore."""

    restored_ts: str
    phase: str = "0"


def backup_arguments(backup: Backup, *, cluster_tls: bool) -> list[str]:
    """`br backup …` for a snapshot. Raises NoBR, UnknownStorage."""
    spec, br = backup.spec, _br(backup.spec.br)
    words = ["backup", _type(spec.backup_type), *given([("backupts", tso.with_zone(spec.commit_ts))])]
    common = _common(br, spec, spec.backup_type, spec.table_filter, backup.metadata.namespace, tls=cluster_tls)
    return [*words, *common, *given(_backup_options(br)), *br.options]


def log_arguments(backup: Backup, command: str, commit_ts: str, truncate_until: str, *, cluster_tls: bool) -> list[str]:
    """`br log …` for a sub-command, e.g. `log-start`; a timestamp of `0` means none.

    Raises NoBR, UnknownStorage; ValueError for a truncation without a timestamp.
    """
    spec, br = backup.spec, _br(backup.spec.br)
    words = ["log", command.removeprefix("log-")]
    if command == log_backups.TRUNCATE:
        if truncate_until in ("", "0"):
            raise ValueError("--truncate-until is missing: set spec.logTruncateUntil")
        words.append(f"--until={tso.with_zone(truncate_until)}")
    else:
        words.append(f"--task-name={backup.metadata.name}")
    if command == log_backups.START and commit_ts not in ("", "0"):
        words.append(f"--start-ts={tso.with_zone(commit_ts)}")
    common = _common(br, spec, spec.backup_type, spec.table_filter, backup.metadata.namespace, tls=cluster_tls)
    return [*words, *common, *given(_backup_options(br)), *br.options]


def restore_arguments(restore: Restore, point: PointInTime | None, *, cluster_tls: bool) -> list[str]:
    """`br restore …`; with `point`, from the log of changes. Raises NoBR, UnknownStorage."""
    spec, br = restore.spec, _br(restore.spec.br)
    options = [
        ("concurrency", _number(br.concurrency)),
        ("checksum", _bool(br.checksum)),
        ("check-requirements", _bool(br.check_requirements)),
        ("ratelimit", _number(br.rate_limit)),
        ("online", _bool(br.on_line)),
    ]
    common = _common(br, spec, spec.backup_type, spec.table_filter, restore.metadata.namespace, tls=cluster_tls)
    words = ["restore", "point" if point else _type(spec.backup_type)]
    return [*words, *common, *given(options), *br.options, *(_point_in_time(restore, point) if point else ())]


def abort_arguments(restore: Restore, point: PointInTime | None, *, cluster_tls: bool) -> list[str]:
    """`br abort restore …`, which undoes a failed restore. Raises NoBR, UnknownStorage."""
    return ["abort", *restore_arguments(restore, point, cluster_tls=cluster_tls)]


def _backup_options(br: BRConfig) -> list[tuple[str, str]]:
    return [
        ("concurrency", _number(br.concurrency)),
        ("ratelimit", _number(br.rate_limit)),
        ("timeago", br.time_ago),
        ("checksum", _bool(br.checksum)),
        ("check-requirements", _bool(br.check_requirements)),
    ]


def _point_in_time(restore: Restore, point: PointInTime) -> list[str]:
    full = restore.spec.pitr_full_backup_storage_provider
    base = [("full-backup-storage", storage_url(full))] if full.provider else []
    if not base:
        base = [("start-ts", tso.with_zone(restore.spec.log_restore_start_ts))]
    step = [] if point.phase == "0" else [f"--restore-phase={point.phase}", *_REPLICATION]
    return [*given([("restored-ts", tso.with_zone(point.restored_ts)), *base]), *step]


def _common(
    br: BRConfig, storage: StorageProvider, type_: str, table_filter: list[str], namespace: str, *, tls: bool
) -> list[str]:
    """The arguments of every run of BR: PD's address, the storage, and the selected data."""
    pd = f"--pd={br.cluster}-pd.{br.cluster_namespace or namespace}:2379"
    certificates = [f"--ca={_TLS}/ca.crt", f"--cert={_TLS}/tls.crt", f"--key={_TLS}/tls.key"] if tls else []
    options = [
        ("log-level", br.log_level),
        ("status-addr", br.status_addr),
        ("send-credentials-to-tikv", _bool(br.send_cred_to_tikv)),
    ]
    return [pd, *certificates, *given(options), *storage_flags(storage), *_selection(br, type_, table_filter)]


def _selection(br: BRConfig, type_: str, table_filter: list[str]) -> list[str]:
    if table_filter:
        return [word for each in table_filter for word in ("--filter", each)]
    match type_:
        case "table":
            return given([("table", br.table), ("db", br.db)])
        case "db":
            return given([("db", br.db)])
        case _:
            return []


def _br(br: BRConfig | None) -> BRConfig:
    if br is None:
        raise NoBR
    return br


def _type(backup_type: str) -> str:
    return backup_type or "full"


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _bool(value: bool | None) -> str:
    return "" if value is None else ("true" if value else "false")
