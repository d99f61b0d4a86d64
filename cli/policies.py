"""Bounds for a plan, `--policy NAME=N`: a plan that breaks one fails its command."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

MAX_RESTARTS = "max-restarts"
MINIMA: Mapping[str, str] = {"min-pd": "pd", "min-stores": "tikv", "min-tidb": "tidb"}
"""The components whose Ready pods a policy bounds from below."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A bound for every cluster of a plan: `name` is MAX_RESTARTS or a key of MINIMA."""

    name: str
    bound: int


def add_policies(parser: argparse.ArgumentParser) -> None:
    """Add the option `policies`."""
    text = f"a bound that the plan must keep: {MAX_RESTARTS}, {', '.join(MINIMA)}; repeat for more"
    parser.add_argument(
        "--policy", dest="policies", type=_policy, action="append", default=[], metavar="NAME=N", help=text
    )


def _policy(text: str) -> Policy:
    name, _, bound = text.partition("=")
    if name not in (MAX_RESTARTS, *MINIMA) or not bound.isdecimal():
        known = ", ".join((MAX_RESTARTS, *MINIMA))
        raise argparse.ArgumentTypeError(f"{text!r} is no policy; write NAME=N with one of {known}")
    return Policy(name, int(bound))
