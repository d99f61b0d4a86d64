"""`tidb-operator diff`: what the operator would write now, as a difference of each object; nothing is written."""

import argparse
import difflib
import os
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace

import yaml

from cli.failures import Failure
from controller_manager.flags import parse
from controller_manager.logs import configure_logs
from controller_manager.observing import PlannedWrites, comparable
from controller_manager.process import project_version
from controller_manager.tidb import tidb_controller_manager
from informers.cache_sync import CacheSyncTimeout
from kube.config import ConfigError, load
from kube.dry_run import PlannedWrite
from kube.objects import Json
from ports.clock import SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop

NOTHING, DIFFERS, FAILED = 0, 1, 2
"""As `kubectl diff` ends."""

_SECRETS = "secrets"


class DiffFailed(Failure):
    """Raised when it could not be found out."""

    code = FAILED


def run(arguments: Sequence[str]) -> int:
    """The exit code: 0 when nothing would be written, 1 when something would. Raises DiffFailed."""
    parser = argparse.ArgumentParser(
        "tidb-operator diff",
        usage="tidb-operator diff [-n NAMESPACE] [flags of the controller-manager]",
        description=textwrap.dedent(__doc__),
        epilog="Exit codes: 0 nothing would be written, 1 something would, 2 it could not be found out.",
        allow_abbrev=False,
    )
    parser.add_argument("-n", "--namespace", default="", help="look at this namespace only (default: at all)")
    own, flags = parser.parse_known_args(arguments)
    planned: list[PlannedWrite] = []
    _observe(own.namespace, flags, planned)
    for write in sorted(planned, key=lambda each: (each.namespace, each.resource, each.name)):
        sys.stdout.write(shown(write))
    return DIFFERS if planned else NOTHING


def _observe(namespace: str, flags: Sequence[str], planned: list[PlannedWrite]) -> None:
    clock, stop = SystemClock(), Stop()
    configure_logs(-1, clock=clock)
    options = replace(parse(flags, os.environ, project_version()), observe=True)
    if namespace:
        options = replace(options, namespace=namespace, cluster_scoped=False)
    try:
        config = load(options.kubeconfig, os.environ, clock)
        report = PlannedWrites(planned.append)
        manager = tidb_controller_manager(options, config, os.environ, clock, SystemRandomness(), planned=report)
        manager.work_once(stop)
    except (ConfigError, CacheSyncTimeout) as error:
        raise DiffFailed(str(error)) from error


def shown(write: PlannedWrite) -> str:
    """The difference as `diff -u` shows it; of a Secret, that there is one."""
    name = f"{write.resource}/{write.name}" if write.name else write.resource
    title = f"{write.namespace}/{name}" if write.namespace else name
    if write.resource == _SECRETS or (write.before is None and write.after is None):
        return f"{write.verb} {title}\n"
    lines = difflib.unified_diff(
        _lines(write.before), _lines(write.after), f"{title} (live)", f"{title} ({write.verb})", n=2
    )
    return "".join(lines)


def _lines(tree: Json | None) -> list[str]:
    found = comparable(tree)
    return yaml.safe_dump(found, sort_keys=True).splitlines(keepends=True) if found is not None else []
