"""`kubectl tidb plan`: what a change would do to a running cluster, by a rehearsal on its twin."""

import argparse
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from cli.failures import Failure
from cli.policies import add_policies
from cli.tidb.clusters import find_cluster
from cli.tidb.command import Command
from cli.tidb.output import FORMATS, MARKDOWN
from cli.tidb.session import Session

_REHEARSAL = "cli.twin_plan"
"""The module with the sandbox, which the single file of the plugin leaves out."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", metavar="CLUSTER", help="NAME, tc/NAME or dc/NAME")
    changed = "manifests with the changed cluster, and Secrets and ConfigMaps (- is standard input); repeat for more"
    parser.add_argument("-f", "--filename", dest="files", type=Path, action="append", default=[], help=changed)
    setting = "another value of a field, in YAML, e.g. spec.tikv.replicas=5; repeat for more"
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="PATH=VALUE", help=setting)
    parser.add_argument("--version", dest="to_version", default="", metavar="VERSION", help="another spec.version")
    add_policies(parser)


def _run(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    try:
        rehearsal = import_module(_REHEARSAL)
    except ModuleNotFoundError:
        raise Failure("this file of the plugin has no sandbox; install the package for `plan`") from None
    found = find_cluster(session.client, session.namespace, given.cluster)
    settings = [*given.settings, *([f"spec.version={given.to_version}"] if given.to_version else [])]
    code: int = rehearsal.show_plan(session, found, given.files, settings, given.policies)
    return code


PLAN = Command(
    _run,
    _add_arguments,
    details=(
        "Nothing is written. The change is rehearsed in a sandbox, on a twin of the cluster, which needs no rights "
        "but to read. "
        "Exit codes: 0 the change goes through and all serve meanwhile, 1 it is refused, gets stuck, stops something "
        "for a while, or breaks a --policy, 2 it could not be rehearsed."
    ),
    formats=(*FORMATS, MARKDOWN),
)
