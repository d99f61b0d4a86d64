"""From a command line to its job (backup.md 7.2)."""

import functools
from collections.abc import Callable, Mapping, Sequence

from backup_manager.backup import BackupOptions, run_backup
from backup_manager.clean import CleanOptions, run_clean
from backup_manager.compact import CompactOptions, run_compact
from backup_manager.exports import ExportOptions, run_export
from backup_manager.flags import Arguments, parse
from backup_manager.imports import ImportOptions, run_import
from backup_manager.log_backup import LogOptions, run_log_backup
from backup_manager.outside import Outside
from backup_manager.restore import RestoreOptions, run_restore
from backup_manager.verify import VerifyOptions, run_verify


def job(argv: Sequence[str]) -> Callable[[Outside], None]:
    """The job of a command line. Raises MissingFlags, NotBuilt."""
    arguments = parse(argv)
    work = JOBS[arguments.command]
    return functools.partial(work, arguments)


def _backup(arguments: Arguments, outside: Outside) -> None:
    if arguments.text("mode") == "log":
        run_log_backup(_log_options(arguments), outside)
        return
    options = BackupOptions(
        arguments.text("namespace"),
        arguments.text("backupName"),
        tikv_version=arguments.text("tikvVersion"),
        mode=arguments.text("mode"),
        tls=arguments.tls,
    )
    run_backup(options, outside)


def _log_options(arguments: Arguments) -> LogOptions:
    return LogOptions(
        arguments.text("namespace"),
        arguments.text("backupName"),
        command=arguments.text("subcommand"),
        commit_ts=arguments.text("commit-ts"),
        truncate_until=arguments.text("truncate-until"),
        cluster_tls=arguments.is_set("cluster-tls"),
    )


def _restore(arguments: Arguments, outside: Outside) -> None:
    options = RestoreOptions(
        arguments.text("namespace"),
        arguments.text("restoreName"),
        tikv_version=arguments.text("tikvVersion"),
        mode=arguments.text("mode"),
        restored_ts=arguments.text("pitrRestoredTs"),
        tls=arguments.tls,
        abort=arguments.is_set("abort"),
        phase=arguments.text("replicationPhase"),
    )
    run_restore(options, outside)


def _clean(arguments: Arguments, outside: Outside) -> None:
    run_clean(CleanOptions(arguments.text("namespace"), arguments.text("backupName")), outside)


def _export(arguments: Arguments, outside: Outside) -> None:
    options = ExportOptions(
        arguments.text("namespace"),
        arguments.text("backupName"),
        storage_type=arguments.text("storageType"),
        tls=arguments.tls,
    )
    run_export(options, outside)


def _import(arguments: Arguments, outside: Outside) -> None:
    options = ImportOptions(
        arguments.text("namespace"),
        arguments.text("restoreName"),
        backup_path=arguments.text("backupPath"),
        tls=arguments.tls,
    )
    run_import(options, outside)


def _verify(arguments: Arguments, outside: Outside) -> None:
    options = VerifyOptions(
        arguments.text("namespace"), arguments.text("backupName"), checksums=arguments.is_set("checksums")
    )
    run_verify(options, outside)


def _compact(arguments: Arguments, outside: Outside) -> None:
    run_compact(CompactOptions(arguments.text("namespace"), arguments.text("resourceName")), outside)


JOBS: Mapping[str, Callable[[Arguments, Outside], None]] = {
    "backup": _backup,
    "export": _export,
    "restore": _restore,
    "import": _import,
    "clean": _clean,
    "compact": _compact,
    "verify": _verify,
}
