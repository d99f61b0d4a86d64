"""The program `br`."""

from collections.abc import Callable, Mapping, Sequence

from sandbox.dataplane.br import log, point
from sandbox.dataplane.br.backup import back_up
from sandbox.dataplane.br.request import parse
from sandbox.dataplane.br.restore import abort, restore
from sandbox.dataplane.br.run import Failed, Open, Run, Say
from sandbox.dataplane.commands import Surroundings

_SCOPES = ("full", "db", "table")
_COMMANDS: Mapping[tuple[str, ...], Callable[[Run], None]] = {
    **{("backup", scope): back_up for scope in _SCOPES},
    **{("restore", scope): restore for scope in _SCOPES},
    **{("abort", "restore", scope): abort for scope in _SCOPES},
    ("restore", "point"): point.restore_point,
    ("abort", "restore", "point"): point.abort_point,
    ("log", "start"): log.start,
    ("log", "pause"): log.pause,
    ("log", "resume"): log.resume,
    ("log", "stop"): log.stop,
    ("log", "truncate"): log.truncate,
}


def run_br(arguments: Sequence[str], surroundings: Surroundings, open_files: Open, say: Say) -> int:
    """Run a command line and return the exit code."""
    request = parse(arguments)
    carry_out = _COMMANDS.get(request.words)
    if carry_out is None:
        say(f'Error: unknown command "{" ".join(request.words)}" for "br" of the sandbox')
        return 1
    try:
        run = Run(request, open_files(request), surroundings, say, open_files)
        started = f"operation_started_at={surroundings.clock.wall().isoformat(timespec='milliseconds')}"
        command = " ".join(request.words)
        name = f"{surroundings.launch.pod_uid}-{surroundings.clock.wall().timestamp():.0f}"
        run.note("INFO", '"BR operation started"', f"operation_id={name}", started, f'command="{command}"')
        carry_out(run)
    except (Failed, OSError) as error:
        say(f"[ERROR] [{request.title} failed] [error={error}]")
        return 1
    return 0
