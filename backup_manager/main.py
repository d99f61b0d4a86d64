"""The command `backup-manager` (backup.md 7)."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import structlog
from structlog.typing import EventDict

from backup_manager.child_process import SystemLauncher
from backup_manager.commands import job
from backup_manager.database import MySqlDatabase
from backup_manager.environment import notify_sidecars, prepared
from backup_manager.flags import FLAGS, PROGRAM, Arguments, MissingFlags, parse
from backup_manager.jobs import job_for
from backup_manager.outcomes import JobFailed, NotBuilt, Stopped, Undecrypted, Unusable
from backup_manager.outside import Outside
from backup_manager.records import RecordGone
from backup_manager.redaction import Secrets
from backup_manager.storage.location import Location
from backup_manager.storage.objects import Storage, open_storage
from kube.config import ConfigError
from kube.connecting import connect
from kube.errors import ApiError
from kube.resources import BACKUPS, RESTORES, Resource
from kube.user_config import load
from ports.clock import Clock, SystemClock
from ports.foreign_text import printable
from ports.stopping import Stop
from ports.transport import TransportError

_log = structlog.get_logger(__name__)

_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT)

_INTERRUPTED = 130
"""The exit code of a job that a signal ended: its pod failed, the work did not."""

_NO_PROGRAM = 127
"""A shell's exit code for a command that does not exist."""

_ENDS = (JobFailed, NotBuilt, Undecrypted, Unusable, RecordGone, ApiError, TransportError, ConfigError)

_OBJECTS: Mapping[str, Resource] = {"backupName": BACKUPS, "restoreName": RESTORES}
"""The objects with conditions, by the flag with their name."""
REASON = "KMSDecryptionFailed"


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Run the command line and return the exit code. Call it in the main thread.

    An unknown command is executed in place of this process, as by v1.6's entrypoint.
    """
    argv = sys.argv[1:] if argv is None else argv
    environ = dict(os.environ if environ is None else environ)
    if argv and argv[0] not in FLAGS and not argv[0].startswith("-"):
        return _execute(argv, environ)
    clock = SystemClock()
    _configure_logs(clock, Secrets(environ))
    try:
        return exit_code(lambda: _run(argv, environ, clock), environ, _tell)
    finally:
        notify_sidecars()


def _execute(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Replace this process by another program; return a shell's exit code if it cannot be executed."""
    try:
        os.execvpe(argv[0], list(argv), environ)  # noqa: S606  (what the pod's author asked for)
    except OSError as error:
        _tell(f"{PROGRAM}: {argv[0]} is none of its commands ({', '.join(FLAGS)}), and no program: {error.strerror}")
    return _NO_PROGRAM


def exit_code(work: Callable[[], None], environ: Mapping[str, str], report: Callable[[str], None]) -> int:
    """Run the work and return the exit code. `report` receives the reason of a failure without the secrets in
    `environ`.
    """
    try:
        work()
    except Stopped:
        _log.warning("ended by a signal; what is not done is left to another pod")
        return _INTERRUPTED
    except (MissingFlags, *_ENDS) as error:
        report(f"{PROGRAM}: {Secrets(environ).cut_from(str(error))}")
        return 1
    return 0


def _tell(why: str) -> None:
    print(printable(why, lines=True), file=sys.stderr)  # noqa: T201  (for the pod's log)


def _run(argv: Sequence[str], environ: dict[str, str], clock: Clock) -> None:
    """Run the job. What KMS decrypts is added to `environ`, so that logs and reports do not contain it."""
    arguments, work = parse(argv), job(argv)
    stop = Stop()
    for signals in _SIGNALS:
        signal.signal(signals, stop.set)
    config = load(arguments.kubeconfig, environ, clock)
    # a stop of its own, because the outcome is written even after a signal
    connection = connect(config, environ, clock, Stop(), user_agent=PROGRAM)
    outside = Outside(connection.client, clock, SystemLauncher(), _open_storage, MySqlDatabase, environ, stop)
    try:
        outside = ready(arguments, outside)
        environ |= outside.environ
        _configure_logs(clock, outside.secrets)
        work(outside)
    finally:
        connection.transport.close()


def _open_storage(location: Location, environ: Mapping[str, str], bulk: bool) -> Storage:
    return open_storage(location, environ, bulk=bulk)


def _configure_logs(clock: Clock, secrets: Secrets) -> None:
    def add_timestamp(_logger: object, _method: str, event: EventDict) -> EventDict:
        event["timestamp"] = clock.wall().isoformat(timespec="milliseconds")
        return event

    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            add_timestamp,
            structlog.processors.format_exc_info,
            secrets.redact,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def ready(arguments: Arguments, outside: Outside) -> Outside:
    """The job's outside with a prepared environment.

    Raises Undecrypted after writing it into the conditions of the object; raises RecordGone, ApiError, TransportError.
    """
    try:
        return replace(outside, environ=prepared(outside.environ))
    except Undecrypted as error:
        for flag, resource in _OBJECTS.items():
            if flag in arguments.values:
                job = job_for(outside, resource, arguments.text("namespace"), arguments.text(flag))
                job.condition("CleanFailed" if arguments.command == "clean" else "Failed", REASON, str(error))
        raise
