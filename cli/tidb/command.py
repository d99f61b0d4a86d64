"""What a command of the plugin is: a name, its arguments, and what it does."""

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
    """One command. `summary` is its line in the list, `details` what `--help` says below the usage.

    `hands_on`: flags that its parser does not know are for another program, and are in the last argument of `run`.
    """

    name: str
    summary: str
    run: Run
    add_arguments: Callable[[argparse.ArgumentParser], None] = no_arguments
    details: str = ""
    hands_on: bool = False
