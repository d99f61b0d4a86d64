"""`kubectl tidb diff`: `tidb-operator diff` with the flags of the plugin, and for some clusters only."""

import argparse
import sys
from collections.abc import Sequence
from itertools import takewhile

from apis.identity import INSTANCE_LABEL, instance_name
from cli.tidb.clusters import Found, find_cluster
from cli.tidb.command import Command
from cli.tidb.session import Session
from kube.dry_run import PlannedWrite


def _run(session: Session, _: argparse.Namespace, given: Sequence[str]) -> int:
    from cli import diff  # noqa: PLC0415  (it takes a controller-manager, for which each completion would wait)

    # a positional argument of argparse would take the values of flags that it does not know
    names = list(takewhile(lambda word: not word.startswith("-"), given))
    namespace = session.namespace if names else session.asked_namespace
    clusters = [find_cluster(session.client, namespace, name) for name in names]
    plan = diff.plan_writes(namespace, given[len(names) :], lambda _: session.server.config, session.clock)
    if clusters:
        writes = [write for write in plan.writes if any(concerns(write, cluster) for cluster in clusters)]
        kept = {f"{cluster.resource.kind} {cluster.object.key}" for cluster in clusters}
        plan = diff.Plan(writes, [each for each in plan.paused if each in kept])
    if session.output.is_for_people:
        sys.stdout.writelines(diff.lines_of(plan))
    else:
        document = {"writes": [diff.document(write) for write in plan.writes], "paused": plan.paused}
        session.output.show(document, list)
    return plan.code


def concerns(write: PlannedWrite, found: Found) -> bool:
    """True if a write in the cluster's namespace, or a call, concerns the cluster or an object of it."""
    name = found.object.metadata.name
    tree = write.after or write.before
    if tree is None:
        # a call of a component, whose URL is the resource; or a write of which nothing else is known
        return f"//{name}-" in write.resource or write.name == name or write.name.startswith(f"{name}-")
    meta = tree["metadata"]
    owners = {(each["kind"], each["name"]) for each in meta.get("ownerReferences") or ()}
    is_itself = write.name == name and write.resource == found.resource.plural
    instance = (meta.get("labels") or {}).get(INSTANCE_LABEL)
    return is_itself or instance == instance_name(found.cluster) or (found.resource.kind, name) in owners


DIFF = Command(
    _run,
    details=(
        "Nothing is written. Changes that spec.paused holds back are shown, too. "
        "Name clusters first to see their changes only: `kubectl tidb diff basic`. Otherwise, without -n, all "
        "namespaces. Flags of the controller-manager are accepted. "
        "Exit codes: 0 nothing would be written, 1 something would, 2 it could not be found out."
    ),
    hands_on=True,
)
