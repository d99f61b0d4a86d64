"""`kubectl tidb ui`: a page about the clusters, on loopback, with the user's own rights."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

from rich.text import Text

from cli.failures import Failure
from cli.tidb.command import Command
from cli.tidb.connection import Kubeconfig, connection_flags
from cli.tidb.output import Output, Page
from cli.tidb.session import Session
from controller_manager.shutdown import stopping_on_signals
from ports.clock import Clock
from ports.stopping import Stop

_SERVER = "cli.tidb.ui.server"
"""The module with the server, whose requirements are an extra, and which the single file of the plugin leaves out."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=_port, default=0, help="the port on 127.0.0.1 (default: any free one)")
    write = "let the page make the changes that it has planned, with your rights"
    parser.add_argument("--write", action="store_true", help=write)


def _run(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    server = _server()
    rehearsals = server.Rehearsals(connection_flags(given))
    serving = server.serving(session, given.port, rehearsals, writes=given.write)
    may = "The page can change clusters" if given.write else "The page changes nothing"
    with stopping_on_signals(stop := Stop()), serving as address:
        # a terminal narrower than the address must not break it
        lines: Page = [
            Text(address, no_wrap=True, overflow="ignore"),
            f"Open this address in a browser. {may}. Ctrl-C ends it.",
        ]
        session.output.show({"address": address}, lambda: lines)
        stop.wait(session.clock)
    return 0


@contextmanager
def page_of_sandbox(kubeconfig: Path, clock: Clock) -> Iterator[str]:
    """Serve the page of a sandbox within the block, whose value is the address, or the reason why there is none."""
    try:
        server = _server()
    except Failure as failure:
        yield str(failure)
        return
    with closing(Kubeconfig(str(kubeconfig), "", {}, clock)) as reached:
        session, rehearsals = Session(reached, clock, Output()), server.Rehearsals([f"--kubeconfig={kubeconfig}"])
        with server.serving(session, 0, rehearsals, writes=True, playground=True) as address:
            yield address


def _server() -> ModuleType:
    """The module that serves. Raises Failure if a requirement is missing."""
    try:
        return import_module(_SERVER)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
    if missing == "cli":
        raise Failure("this file of the plugin has no page; install the package with its extra `ui`")
    raise Failure(f"{missing} is missing; the page needs an extra: pip install 'tidb-operator-py[ui]'")


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; write a number from 0 to 65535")
    return int(text)


UI = Command(
    _run,
    _add_arguments,
    details="It needs the extra `ui` of this package. Only this machine reaches it, by the address that is printed.",
)
