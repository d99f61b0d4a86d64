"""What a command of the plugin is: its arguments, and what it does. Its name is in the table (`cli.tidb.commands`)."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cli.tidb.session import Session

Run = Callable[[Session, argparse.Namespace, Sequence[str]], int]
"""Takes the session, the parsed arguments, and the flags that were handed on; the exit code."""


def no_arguments(_parser: argparse.ArgumentParser) -> None:
    """Of a command that takes the shared flags alone."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command. `details` is what `--help` says below the usage, after the summary of the table.

    `hands_on`: flags that its parser does not know are for another program, and are in the last argument of `run`.
    """

    run: Run
    add_arguments: Callable[[argparse.ArgumentParser], None] = no_arguments
    details: str = ""
    hands_on: bool = False
