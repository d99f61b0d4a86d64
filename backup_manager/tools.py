"""A run of BR, Dumpling, TiDB Lightning or tikv-ctl: its log is passed on, its errors are kept (backup.md 7.6, 7.9)."""

from collections.abc import Callable, Mapping, Sequence

import structlog

from backup_manager.br_log import ErrorLines
from backup_manager.child_process import CannotStart, OnLine
from backup_manager.outcomes import Stopped
from backup_manager.outside import Outside

_log = structlog.get_logger(__name__)


class ToolFailed(Exception):
    """Raised when a tool ends with an error, or does not start; the message is what it said."""


def run_tool(
    title: str,
    command: Sequence[str],
    outside: Outside,
    also: Callable[[str], None] = lambda _line: None,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Run a program to its end, in our environment or in another one. `also` is told each line, without secrets.

    Raises ToolFailed; Stopped when a signal was why.
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
    """As `run_tool`, for who takes the lines as they are; `why` tells what of them says why it failed."""
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
