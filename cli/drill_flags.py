"""The flags of a drill: what is lost, when, and for how long. Light: completions import it."""

import argparse

from cli.failures import Failure
from cli.policies import add_policies
from ports import duration

KINDS = ("node", "zone", "pod")
"""What a name follows in `--fail KIND/NAME`."""
OPERATOR = "operator"
"""What can be lost without a name."""


def add_drill_flags(parser: argparse.ArgumentParser) -> None:
    """Add the options `fail`, `during`, `at`, `every_moment`, `lasting` and `policies`."""
    fail = "what is lost: node/NAME, zone/NAME, pod/NAME (it ends at each start), or operator"
    parser.add_argument("--fail", type=_loss, required=True, metavar="WHAT", help=fail)
    moments = parser.add_mutually_exclusive_group()
    during = "lose it when this step of the change begins, e.g. 'restart of basic-tikv-1'"
    moments.add_argument("--during", default="", metavar="STEP", help=during)
    at = "lose it so long after the change, e.g. 90s"
    moments.add_argument("--at", type=_seconds, metavar="DURATION", help=at)
    every = "try the loss at each step of the change, and show the worst"
    moments.add_argument("--every-moment", action="store_true", help=every)
    lasting = "it returns after so long, e.g. 10m (default: never; the operator after 20s, when another has its Lease)"
    parser.add_argument("--for", dest="lasting", type=_seconds, default=0.0, metavar="DURATION", help=lasting)
    add_policies(parser)


def check_moment(given: argparse.Namespace, ways: str) -> None:
    """Raise Failure if a moment is named although nothing changes; `ways` are the flags that name a change."""
    for flag, value in (("--during", given.during), ("--at", given.at), ("--every-moment", given.every_moment)):
        if value not in ("", None, False):
            shown = flag if value is True else f"{flag} {value:g}s" if isinstance(value, float) else f"{flag} {value}"
            raise Failure(f"{shown}: is a moment of a change, and nothing changes; name the change with {ways}")


def _loss(text: str) -> tuple[str, str]:
    kind, _, name = text.partition("/")
    if text == OPERATOR or (kind in KINDS and name):
        return kind, name
    known = ", ".join([*(f"{each}/NAME" for each in KINDS), OPERATOR])
    raise argparse.ArgumentTypeError(f"{text!r} cannot be lost; write one of {known}")


def _seconds(text: str) -> float:
    try:
        seconds = duration.seconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if seconds < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is in the past; write a duration such as 90s")
    return seconds
