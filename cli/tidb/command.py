"""A command of the plugin: its arguments and its action. The table `cli.tidb.main` has its name."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cli.tidb.output import FORMATS
from cli.tidb.session import Session

Run = Callable[[Session, argparse.Namespace, Sequence[str]], int]
"""Receives the session, the parsed arguments, and the forwarded words; returns the exit code."""


def no_arguments(_parser: argparse.ArgumentParser) -> None:
    """Add nothing, for a command with only the shared flags."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command. `details` follows the usage in `--help`, after the table's summary.

    `hands_on`: unknown flags belong to another program, and are in the last argument of `run`. `takes_rest`: what
    follows `--` does. `formats` are the values of `-o`.
    """

    run: Run
    add_arguments: Callable[[argparse.ArgumentParser], None] = no_arguments
    details: str = ""
    hands_on: bool = False
    takes_rest: bool = False
    formats: Sequence[str] = FORMATS
