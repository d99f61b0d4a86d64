"""Logs on stderr: readable on a terminal, JSON otherwise, free of secrets.

The operator's own events, libraries' (through `logging`) and Python's own output take the same path. Exceptions
are rendered before redaction, so that no stack trace hides a secret.
"""

import contextlib
import json
import logging
import sys
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from controller_manager.redaction import redact, redact_text
from ports.clock import Clock

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_log = structlog.get_logger(__name__)

_DEBUG_FROM = 4
"""The klog verbosity from which v1.6 prints debug messages."""

_LIBRARIES_FROM = 6
"""The klog verbosity from which requests are printed."""

_FIRST = ("timestamp", "level", "event", "key", "stage", "kind", "name")

_NOISY = ("urllib3", "requests", "kubernetes")


def configure_logs(
    verbosity: int, *, clock: Clock, stream: TextIO | None = None, always: Mapping[str, object] | None = None
) -> None:
    """Log to `stream` (default: stderr) from now on; `verbosity` is klog's `-v`, below 0 for warnings only.

    `always` is in each line. May be called again.
    """
    stream = stream or sys.stderr
    level = logging.DEBUG if verbosity >= _DEBUG_FROM else logging.INFO if verbosity >= 0 else logging.WARNING
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        _timestamp(clock),
        _adding(always or {}),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
    ]
    # bound loggers are not cached: tests and the sandbox configure more than once in a process
    structlog.configure(
        processors=[*before, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    handler = _Handler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=before,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, redact, _renderer(stream)],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for library in _NOISY:
        logging.getLogger(library).setLevel(logging.DEBUG if verbosity >= _LIBRARIES_FROM else logging.WARNING)
    logging.captureWarnings(True)
    # this logger prints whole answers, including Secrets
    logging.getLogger("kubernetes.client.rest").setLevel(logging.WARNING)


def log_uncaught_exceptions(on_thread_death: Callable[[str], None] = lambda _thread: None) -> None:
    """Log uncaught exceptions that end a thread or the process, including SystemExit in a thread (TH-19).

    `on_thread_death` receives the thread's name.
    """

    def thread_ended(args: threading.ExceptHookArgs) -> None:
        name = args.thread.name if args.thread else "unknown"
        _log.critical("uncaught exception in thread", thread=name, exc_info=args.exc_value)
        on_thread_death(name)

    def process_ends(kind: type[BaseException], error: BaseException, _traceback: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            return
        _log.critical("uncaught exception", exc_info=error)

    def ignored(args: "UnraisableHookArgs") -> None:
        _log.error("exception ignored", where=repr(args.object), exc_info=args.exc_value)

    threading.excepthook = thread_ended
    sys.excepthook = process_ends
    sys.unraisablehook = ignored


class _Handler(logging.StreamHandler[TextIO]):
    """Writes lines to a stream; a failed write neither stops the work nor is logged through this handler again."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Replace a line that cannot be rendered or encoded by an ASCII line that names it.

        If the stream accepts no line at all (a full disk, a closed pipe), the line is lost.
        """
        error = sys.exception()
        if error is None or isinstance(error, OSError):
            return
        lost = {"level": "error", "event": "cannot log a line", "of": record.name, "error": repr(error)}
        line = json.dumps({**lost, "line": redact_text(str(record.msg))})
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(line + self.terminator)
            self.flush()


def _timestamp(clock: Clock) -> Processor:
    def add_timestamp(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event["timestamp"] = clock.wall().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return event

    return add_timestamp


def _adding(always: Mapping[str, object]) -> Processor:
    def add(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event.update(always)
        return event

    return add


def _renderer(stream: TextIO) -> Processor:
    if stream.isatty():
        return structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    return structlog.processors.JSONRenderer(serializer=_json)


def _json(event: EventDict, **_: object) -> str:
    """One JSON line, readable for people as well: time and event first, and only unencodable characters escaped."""
    ordered = {key: event[key] for key in _FIRST if key in event}
    return (
        json.dumps({**ordered, **event}, ensure_ascii=False, default=repr).encode("utf-8", "backslashreplace").decode()
    )
