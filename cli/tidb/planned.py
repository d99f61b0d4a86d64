"""`kubectl tidb diff`: `tidb-operator diff` with the flags of the plugin."""

import argparse
import sys
from collections.abc import Sequence

from cli.tidb.command import Command
from cli.tidb.session import Session


def _run(session: Session, _: argparse.Namespace, flags: Sequence[str]) -> int:
    from cli import diff  # noqa: PLC0415  (it takes a controller-manager, for which each completion would wait)

    plan = diff.plan_writes(session.asked_namespace, flags, lambda _: session.server.config, session.clock)
    if session.output.is_for_people:
        sys.stdout.writelines(diff.lines_of(plan))
    else:
        writes = [diff.document(write) for write in plan.writes]
        session.output.show({"writes": writes, "paused": plan.paused}, list)
    return plan.code


DIFF = Command(
    _run,
    details=(
        "Nothing is written. Changes that spec.paused holds back are shown, too. Without -n, all namespaces. "
        "Flags of the controller-manager are accepted. "
        "Exit codes: 0 nothing would be written, 1 something would, 2 it could not be found out."
    ),
    hands_on=True,
)
