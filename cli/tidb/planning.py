"""`kubectl tidb plan` and `drill`: what a change or a loss would do to a running cluster, rehearsed on its twin."""

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from cli.drill_flags import add_drill_flags
from cli.failures import Failure
from cli.policies import add_policies
from cli.tidb.clusters import find_cluster
from cli.tidb.command import Command
from cli.tidb.output import PLAN_FORMATS
from cli.tidb.session import Session

_REHEARSAL = "cli.twin_plan"
"""The module with the sandbox, which the single file of the plugin leaves out."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_change(parser)
    add_policies(parser)


def _add_change(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", metavar="CLUSTER", help="NAME, tc/NAME or dc/NAME")
    changed = "manifests with the changed cluster, and Secrets and ConfigMaps (- is standard input); repeat for more"
    parser.add_argument("-f", "--filename", dest="files", type=Path, action="append", default=[], help=changed)
    setting = "another value of a field, in YAML, e.g. spec.tikv.replicas=5; repeat for more"
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="PATH=VALUE", help=setting)
    parser.add_argument("--version", dest="to_version", default="", metavar="VERSION", help="another spec.version")


def _plan(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    rehearsal = _rehearsal("plan")
    found = find_cluster(session.client, session.namespace, given.cluster)
    code: int = rehearsal.show_plan(session, found, given.files, _settings(given), given.policies)
    return code


def _add_drill(parser: argparse.ArgumentParser) -> None:
    _add_change(parser)
    add_drill_flags(parser)


def _drill(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    rehearsal = _rehearsal("drill")
    found = find_cluster(session.client, session.namespace, given.cluster)
    code: int = rehearsal.show_drill(session, found, given.files, _settings(given), given)
    return code


def _rehearsal(command: str) -> ModuleType:
    """The module that rehearses. Raises Failure."""
    try:
        return import_module(_REHEARSAL)
    except ModuleNotFoundError:
        raise Failure(f"this file of the plugin has no sandbox; install the package for `{command}`") from None


def _settings(given: argparse.Namespace) -> Sequence[str]:
    return [*given.settings, *([f"spec.version={given.to_version}"] if given.to_version else [])]


PLAN = Command(
    _plan,
    _add_arguments,
    details=(
        "Nothing is written. The change is rehearsed in a sandbox, on a twin of the cluster, which needs no rights "
        "but to read. Without -f, --set and --version, it is the rest of the change that is under way. "
        "Exit codes: 0 the change goes through and all serve meanwhile, 1 it is refused, gets stuck, stops something "
        "for a while, or breaks a --policy, 2 it could not be rehearsed."
    ),
    formats=PLAN_FORMATS,
)

DRILL = Command(
    _drill,
    _add_drill,
    details=(
        "Nothing is written, and nothing fails but in the sandbox, where a twin of the cluster loses what --fail "
        "names: at rest, or during the change that -f, --set or --version describes. "
        "Exit codes: 0 the cluster serves and becomes whole again without help, 1 something stops, something is left "
        "for a human, or a --policy is broken, 2 it could not be rehearsed."
    ),
    formats=PLAN_FORMATS,
)
