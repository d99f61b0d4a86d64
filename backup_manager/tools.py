"""A run of BR, Dumpling, TiDB Lightning or tikv-ctl: passes on its log and keeps its errors (backup.md 7.6, 7.9)."""

from collections.abc import Callable, Mapping, Sequence

import structlog

from backup_manager.br_log import ErrorLines
from backup_manager.child_process import CannotStart, OnLine
from backup_manager.outcomes import Stopped
from backup_manager.outside import Outside

_log = structlog.get_logger(__name__)


class ToolFailed(Exception):
    """Raised if a tool fails or does not start; the message is its error output."""


def run_tool(
    title: str,
    command: Sequence[str],
    outside: Outside,
    also: Callable[[str], None] = lambda _line: None,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Run a program to its end, in this environment or another. `also` receives each line, without secrets.

    Raises ToolFailed; Stopped if a signal was the cause.
    """
    secrets, errors = outside.secrets, ErrorLines()

    def on_line(line: str, is_error_stream: bool) -> None:
        line = secrets.cut_from(line)
        _log.info("output", tool=title, line=line)
        errors.add(line, is_error_stream=is_error_stream)
        also(line)

    launch(title, command, outside, on_line, lambda: str(errors), environ)


def launch(  # noqa: PLR0917  (what a run is made of)
    title: str,
    command: Sequence[str],
    outside: Outside,
    on_line: OnLine,
    why: Callable[[], str],
    environ: Mapping[str, str] | None = None,
) -> None:
    """Like `run_tool`, with raw lines; `why` returns the reason of a failure."""
    _log.info("starting", tool=title, arguments=[outside.secrets.cut_from(word) for word in command[1:]])
    try:
        code = outside.launcher.run(command, environ or outside.environ, on_line, outside.stop)
    except CannotStart as error:
        raise ToolFailed(str(error)) from error
    if code == 0:
        return
    if outside.stop.is_set():
        raise Stopped
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    raise ToolFailed(f"{title} ended with {how}: {why()}".rstrip(": "))
