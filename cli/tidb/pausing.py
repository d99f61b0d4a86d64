"""`kubectl tidb pause`, `resume`, `hibernate` and `wake`: fields of a cluster's spec that hold it or end its pods.

Sources: scheduler-deployment.md 12.4; lifecycle.md 12.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from apis.accessor import workloads
from apis.cluster import Cluster
from apis.shared import SuspendAction
from cli.tidb.clusters import Found, find_cluster, spec_patch
from cli.tidb.command import Command
from cli.tidb.output import Page
from cli.tidb.session import Session
from kube.objects import Json


@dataclass(frozen=True, slots=True)
class _Switch:
    """A boolean of the spec, `name` in documents: how it is read and written, and what a cluster `does` with it."""

    name: str
    read: Callable[[Cluster], bool]
    write: Callable[[bool], Json]
    does: Callable[[bool], str]
    exceptions: Callable[[Cluster, bool], str] = lambda _cluster, _on: ""
    """A sentence on what the switch does not reach in a cluster; empty if it reaches all."""


def _suspends(action: SuspendAction | None) -> bool:
    return action is not None and action.suspend_stateful_set


def _held_back(cluster: Cluster, on: bool) -> str:
    """The components whose own action replaces the cluster's, and the pause, which comes first."""
    actions = ((f"{workload.field}.suspendAction", workload.spec.suspend_action) for workload in workloads(cluster))
    others = [field for field, action in actions if action is not None and _suspends(action) is not on]
    says = "say otherwise, and come first" if len(others) > 1 else "says otherwise, and comes first"
    parts = (
        f"{', '.join(others)} {says}" if others else "",
        "the cluster is paused: this waits for `kubectl tidb resume`" if cluster.spec.paused else "",
    )
    return "; ".join(filter(None, parts))


_PAUSED = _Switch(
    "paused",
    lambda cluster: cluster.spec.paused,
    lambda on: {"paused": on},
    lambda on: "paused: nothing is changed until it is resumed" if on else "resumed",
)
_SUSPENDED = _Switch(
    "suspend",
    lambda cluster: _suspends(cluster.spec.suspend_action),
    lambda on: {"suspendAction": {"suspendStatefulSet": on}},
    lambda on: "hibernates: its pods end, volumes and configuration stay" if on else "wakes: its pods start",
    _held_back,
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clusters", nargs="+", metavar="CLUSTER", help="NAME, tc/NAME or dc/NAME")


def _command(switch: _Switch, *, on: bool) -> Command:
    def run(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
        # find all clusters before changing the first
        found = [find_cluster(session.client, session.namespace, cluster) for cluster in given.clusters]
        done = [_set(session, each, switch, on=on) for each in found]
        session.output.show({"clusters": done}, lambda: _page(done, switch, on=on))
        return 0

    return Command(run, _add_arguments)


def _set(session: Session, found: Found, switch: _Switch, *, on: bool) -> Json:
    changed = switch.read(found.cluster) is not on
    if changed:
        meta = found.object.metadata
        session.client.patch(found.resource, meta.name, meta.namespace, spec_patch(found.cluster, switch.write(on)))
    exceptions = switch.exceptions(found.cluster, on)
    return found.identity | {switch.name: on, "changed": changed} | ({"but": exceptions} if exceptions else {})


def _page(done: Sequence[Json], switch: _Switch, *, on: bool) -> Page:
    def lines() -> Iterator[str]:
        for each in done:
            already = "" if each["changed"] else "already "
            but = f"; but {each['but']}" if "but" in each else ""
            yield f"{each['kind']} {each['namespace']}/{each['name']} {already}{switch.does(on)}{but}"

    return lines()


PAUSE = _command(_PAUSED, on=True)
RESUME = _command(_PAUSED, on=False)
HIBERNATE = _command(_SUSPENDED, on=True)
WAKE = _command(_SUSPENDED, on=False)
