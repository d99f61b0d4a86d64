"""The table of commands. A command is imported when it is called, so that no other waits for its imports."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from cli.tidb.command import Command


@dataclass(frozen=True, slots=True)
class Listed:
    """A command in the list, with its place: `module:NAME`."""

    summary: str
    place: str

    def load(self) -> Command:
        """Import the command."""
        module, _, name = self.place.partition(":")
        command: Command = getattr(import_module(module), name)
        return command


COMMANDS: Mapping[str, Listed] = {
    "status": Listed("show a cluster at a glance, or a line for each", "cli.tidb.status.command:STATUS"),
    "doctor": Listed("say why a cluster is not as it should be, and the way out", "cli.doctor.command:DOCTOR"),
    "diff": Listed("show what the operator would write now", "cli.tidb.planned:DIFF"),
    "restart": Listed("restart a component pod by pod, or one pod", "cli.tidb.restart:RESTART"),
    "drain": Listed("move the pods of clusters off a node, one at a time", "cli.tidb.drain.command:DRAIN"),
    "logs": Listed("print what pods of a cluster print, several at once", "cli.tidb.logs:LOGS"),
    "pause": Listed("keep the operator from changing clusters", "cli.tidb.pausing:PAUSE"),
    "resume": Listed("let the operator change clusters again", "cli.tidb.pausing:RESUME"),
    "certs": Listed(
        "show the certificates that a cluster needs, and until when they hold", "cli.tidb.certificates:CERTS"
    ),
    "completion": Listed(
        "print what a shell is to run so that it completes kubectl-tidb", "cli.tidb.completion:COMPLETION"
    ),
}
"""By name; a new command is one more line."""
