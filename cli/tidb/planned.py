"""`kubectl tidb diff`: `tidb-operator diff` with the flags of the plugin."""

import argparse
import sys
from collections.abc import Sequence

from cli import diff
from cli.tidb.command import Command
from cli.tidb.session import Session
from controller_manager.observing import comparable
from kube.dry_run import PlannedWrite
from kube.objects import Json


def _run(session: Session, _: argparse.Namespace, flags: Sequence[str]) -> int:
    planned = diff.planned_writes(session.asked_namespace, flags, lambda _: session.server.config, session.clock)
    if session.output.is_for_people:
        for write in planned:
            sys.stdout.write(diff.shown(write))
    else:
        session.output.show({"writes": [_document(write) for write in planned]}, list)
    return diff.DIFFERS if planned else diff.NOTHING


def _document(write: PlannedWrite) -> Json:
    """A write; what a Secret holds is left out."""
    what: Json = {
        "verb": write.verb,
        "resource": write.resource,
        "subresource": write.subresource,
        "namespace": write.namespace,
        "name": write.name,
    }
    if diff.is_secret(write):
        return what
    return what | {"before": comparable(write.before), "after": comparable(write.after)}


DIFF = Command(
    "diff",
    "show what the operator would write now",
    _run,
    details=(
        "Nothing is written. Without -n, all namespaces. Flags of the controller-manager are taken, too. "
        "Exit codes: 0 nothing would be written, 1 something would, 2 it could not be found out."
    ),
    hands_on=True,
)
