"""`tidb-operator diff`: what the operator would write now, as a difference of each object; nothing is written."""

import argparse
import difflib
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import yaml

from cli.documents import ReadableDumper
from cli.failures import Failure
from controller_manager.flags import parse
from controller_manager.logs import configure_logs
from controller_manager.observing import PlannedWrites, comparable
from controller_manager.tidb import tidb_controller_manager
from controller_manager.version import project_version
from informers.cache_sync import CacheSyncTimeout
from kube.config import ClusterConfig, ConfigError
from kube.dry_run import PlannedWrite
from kube.objects import Json
from kube.user_config import load
from member.labels import LAST_APPLIED, WRITTEN_FOR, WRITTEN_GENERATION
from ports.clock import Clock, SystemClock
from ports.randomness import SystemRandomness
from ports.stopping import Stop

NOTHING, DIFFERS, FAILED = 0, 1, 2
"""The exit codes of `kubectl diff`."""

_SECRETS = "secrets"
_RECORDS = (LAST_APPLIED, WRITTEN_FOR, WRITTEN_GENERATION)
"""Annotations in which the operator records whole specs for itself: they repeat each change in a line of kilobytes."""


class DiffFailed(Failure):
    """Raised if the difference could not be determined."""

    code = FAILED


def run(arguments: Sequence[str]) -> int:
    """Run the command; exit code 0 without planned writes, 1 with some. Raises DiffFailed."""
    parser = argparse.ArgumentParser(
        "tidb-operator diff",
        usage="tidb-operator diff [-n NAMESPACE] [flags of the controller-manager]",
        description=textwrap.dedent(__doc__),
        epilog="Exit codes: 0 nothing would be written, 1 something would, 2 it could not be found out.",
        allow_abbrev=False,
    )
    parser.add_argument("-n", "--namespace", default="", help="look at this namespace only (default: all namespaces)")
    own, flags = parser.parse_known_args(arguments)
    clock = SystemClock()
    plan = plan_writes(own.namespace, flags, lambda path: load(path, os.environ, clock), clock)
    sys.stdout.writelines(lines_of(plan))
    return plan.code


@dataclass(frozen=True, slots=True)
class Plan:
    """The planned writes of the controller-manager, in order; `paused` objects hold theirs back."""

    writes: Sequence[PlannedWrite]
    paused: Sequence[str]

    @property
    def code(self) -> int:
        """The exit code of the command."""
        return DIFFERS if self.writes else NOTHING


def lines_of(plan: Plan) -> Iterator[str]:
    """The plan as lines for people."""
    if plan.writes:
        for each in plan.paused:
            yield f"# {each} is paused: its changes below wait until spec.paused is false\n"
    yield from map(shown, plan.writes)


def plan_writes(namespace: str, flags: Sequence[str], configured: Callable[[str], ClusterConfig], clock: Clock) -> Plan:
    """The writes that a controller-manager with these flags would send now; in all namespaces if none is named.

    `configured` returns the cluster of `--kubeconfig`. Raises DiffFailed.
    """
    planned: list[PlannedWrite] = []
    paused: set[str] = set()
    configure_logs(-1, clock=clock)
    options = replace(parse(flags, os.environ, project_version()), observe=True)
    if namespace:
        options = replace(options, namespace=namespace, cluster_scoped=False)
    try:
        config = configured(options.kubeconfig)
        report = PlannedWrites(planned.append, paused.add)
        manager = tidb_controller_manager(options, config, os.environ, clock, SystemRandomness(), planned=report)
        manager.work_once(Stop())
    except (ConfigError, CacheSyncTimeout) as error:
        raise DiffFailed(str(error)) from error
    return Plan(sorted(planned, key=lambda each: (each.namespace, each.resource, each.name)), sorted(paused))


def shown(write: PlannedWrite) -> str:
    """The difference in the format of `diff -u`; of a Secret, only that one exists.

    Records of the operator appear only if nothing else differs.
    """
    name = f"{write.resource}/{write.name}" if write.name else write.resource
    title = f"{write.namespace}/{name}" if write.namespace else name
    if _is_secret(write) or (write.before is None and write.after is None):
        return f"{write.verb} {title}\n"
    before, after = comparable(write.before), comparable(write.after)
    lines = _difference(_without_records(before), _without_records(after)) or _difference(before, after)
    return "".join([f"--- {title} (live)\n", f"+++ {title} ({write.verb})\n", *lines])


def _difference(before: Json | None, after: Json | None) -> list[str]:
    """The lines of a difference without its head."""
    return list(difflib.unified_diff(_lines(before), _lines(after), n=2))[2:]


def _without_records(tree: Json | None) -> Json | None:
    if tree is None or not tree["metadata"].get("annotations"):
        return tree
    annotations = {key: value for key, value in tree["metadata"]["annotations"].items() if key not in _RECORDS}
    return tree | {"metadata": tree["metadata"] | {"annotations": annotations}}


def _lines(tree: Json | None) -> list[str]:
    return yaml.dump(tree, Dumper=ReadableDumper, sort_keys=True).splitlines(keepends=True) if tree is not None else []


def document(write: PlannedWrite) -> Json:
    """A write for programs, without the content of Secrets."""
    what: Json = {
        "verb": write.verb,
        "resource": write.resource,
        "subresource": write.subresource,
        "namespace": write.namespace,
        "name": write.name,
    }
    if _is_secret(write):
        return what
    return what | {"before": comparable(write.before), "after": comparable(write.after)}


def _is_secret(write: PlannedWrite) -> bool:
    """True if the write contains confidential data."""
    return write.resource == _SECRETS
