"""`kubectl tidb`, which kubectl finds on PATH as `kubectl-tidb`; `tidb-operator tidb` is the same."""

import argparse
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module

from cli.failures import Failure, plainly
from cli.tidb.command import Command
from cli.tidb.connection import Kubeconfig
from cli.tidb.output import FORMATS, output_for
from cli.tidb.session import Session
from controller_manager.version import project_version
from ports.clock import SystemClock
from ports.transport import TransportError

PROGRAM = "kubectl tidb"


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Run a command; exit code 1 after a failure, 2 for an unknown command."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return plainly(lambda: run(arguments, os.environ if environ is None else environ), PROGRAM)


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Like `main`. Raises Failure, ApiError, OSError."""
    command, given, handed_on = parse(arguments)
    clock = SystemClock()
    with closing(Kubeconfig(given.kubeconfig, given.context, environ, clock)) as server:
        output = output_for(given.output, environ, no_color=given.no_color)
        try:
            return command.run(Session(server, clock, output, given.namespace), given, handed_on)
        except TransportError as error:
            where = f"{server.config.server}, which {server.config.source} names, cannot be reached"
            raise Failure(f"{where}: {error.cause}; is this the --context that you mean?") from None


def parse(arguments: Sequence[str]) -> tuple[Command, argparse.Namespace, Sequence[str]]:
    """The command, its arguments, and the words that it forwards. Raises SystemExit."""
    parser = make_parser(arguments)
    given, handed_on = parser.parse_known_args(arguments)
    command: Command = given.command
    if command.takes_rest and "--" in arguments:
        at = arguments.index("--")
        return command, parser.parse_args(arguments[:at]), arguments[at + 1 :]
    if handed_on and not command.hands_on:
        parser.error(f"unrecognized arguments: {' '.join(handed_on)}")
    return command, given, handed_on


@dataclass(frozen=True, slots=True)
class Listed:
    """A command in the list, with its place: `module:NAME`.

    Its module is imported when the user runs the command, so that other commands do not wait for its imports.
    """

    summary: str
    place: str

    def load(self) -> Command:
        """Import the command."""
        module, _, name = self.place.partition(":")
        command: Command = getattr(import_module(module), name)
        return command


COMMANDS: Mapping[str, Listed] = {
    "status": Listed("show a cluster at a glance, or a line for each", "cli.tidb.status.command:STATUS"),
    "ui": Listed("serve a page about the clusters on this machine", "cli.tidb.ui.command:UI"),
    "doctor": Listed("say why a cluster is not as it should be, and the way out", "cli.doctor.command:DOCTOR"),
    "plan": Listed("show what a change would do to a cluster", "cli.tidb.planning:PLAN"),
    "drill": Listed("show what a loss would do to a cluster", "cli.tidb.planning:DRILL"),
    "diff": Listed("show what the operator would write now", "cli.tidb.planned:DIFF"),
    "restart": Listed("restart a component pod by pod, or one pod", "cli.tidb.restart:RESTART"),
    "drain": Listed("move the pods of clusters off a node, one at a time", "cli.tidb.drain.command:DRAIN"),
    "logs": Listed("print what pods of a cluster print, several at once", "cli.tidb.logs:LOGS"),
    "sql": Listed("run an SQL client in front of a cluster", "cli.tidb.sql.command:SQL"),
    "report": Listed("collect what support needs into a file, without secrets", "cli.tidb.bundle:REPORT"),
    "backup": Listed("make one more backup of a cluster", "cli.tidb.backing_up:BACKUP"),
    "restore": Listed("fill a cluster from a backup, and show what can be restored", "cli.tidb.restoring:RESTORE"),
    "export-v2": Listed(
        "print the manifests of TiDB Operator v2 for a cluster", "cli.tidb.export_v2.command:EXPORT_V2"
    ),
    "pause": Listed("keep the operator from changing clusters", "cli.tidb.pausing:PAUSE"),
    "resume": Listed("let the operator change clusters again", "cli.tidb.pausing:RESUME"),
    "hibernate": Listed("end all pods of clusters, and keep their volumes", "cli.tidb.pausing:HIBERNATE"),
    "wake": Listed("start the pods of clusters that hibernate", "cli.tidb.pausing:WAKE"),
    "certs": Listed(
        "show the certificates that a cluster needs, and until when they hold", "cli.tidb.certificates:CERTS"
    ),
    "completion": Listed("print a script with which a shell completes kubectl-tidb", "cli.tidb.completion:COMPLETION"),
}
"""The commands by name."""


def make_parser(words: Collection[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser for a command line of `words`, with the arguments of the commands among them.

    Shared flags may precede or follow the command.
    """
    parser = argparse.ArgumentParser(
        PROGRAM,
        description="See and handle the clusters that the operator manages, with your own rights.",
        epilog=f"`{PROGRAM} COMMAND --help` has more. The guide is docs/kubectl-tidb.md.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", "-V", action="version", version=project_version(), help="print the version")
    _add_shared_flags(parser)
    parser.set_defaults(kubeconfig="", context="", namespace="", output=FORMATS[0], no_color=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, listed in COMMANDS.items():
        if name not in words:
            commands.add_parser(name, help=listed.summary)
            continue
        command, summary = listed.load(), f"{listed.summary[:1].upper()}{listed.summary[1:]}."
        own = commands.add_parser(
            name, help=listed.summary, description=f"{summary} {command.details}", allow_abbrev=False
        )
        command.add_arguments(own)
        _add_shared_flags(own, command.formats)
        own.set_defaults(command=command)
    return parser


def _add_shared_flags(parser: argparse.ArgumentParser, formats: Sequence[str] = FORMATS) -> None:
    """Without defaults, which would override flags before the command."""
    flags = parser.add_argument_group("shared flags")
    unset = argparse.SUPPRESS
    flags.add_argument("-n", "--namespace", default=unset, help="the namespace (default: the context's)")
    flags.add_argument("--context", default=unset, help="a context of the kubeconfig (default: the current one)")
    flags.add_argument("--kubeconfig", default=unset, metavar="FILE", help="default: $KUBECONFIG, else ~/.kube/config")
    flags.add_argument("-o", "--output", default=unset, choices=formats, help="default: table")
    flags.add_argument("--no-color", default=unset, action="store_true", help="as NO_COLOR=1")
