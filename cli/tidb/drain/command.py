"""`kubectl tidb drain NODE`: prints the plan; with `--yes` cordons the node and carries the plan out.

With `--undo` it uncordons the node, and withdraws the commands of pods on it.
"""

import argparse
from collections.abc import Sequence

import msgspec

from cli.failures import FAILED
from cli.tidb.command import Command
from cli.tidb.drain.moving import cordon, move, take_back
from cli.tidb.drain.plan import STAYS, Candidate, Step, steps_of
from cli.tidb.drain.surroundings import candidates, find_node
from cli.tidb.output import Columns, Page
from cli.tidb.session import Session
from kube.objects import Object


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", metavar="NODE", help="the node that is to be empty")
    begun = parser.add_mutually_exclusive_group()
    begun.add_argument("--yes", action="store_true", help="do it; without it, only the plan is shown")
    begun.add_argument("--undo", action="store_true", help="take back what was begun, and let pods start on it again")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="give up waiting for a pod after so long")


def _run(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    client, node = session.client, find_node(session.client, given.node)
    on_it = candidates(client, given.node, session.asked_namespace)
    if given.undo:
        return _undo(session, node, on_it)
    steps = steps_of(on_it)
    document = {"node": given.node, "begun": given.yes, "steps": msgspec.to_builtins(steps), "takenBack": []}
    session.output.show(document, lambda: _page(given.node, steps, begun=given.yes))
    if not given.yes:
        return 0
    cordon(client, node, on=True)
    by_name = {(candidate.pod.object.metadata.namespace, candidate.pod.name): candidate for candidate in on_it}
    for step in steps:
        if step.how != STAYS:
            move(session, given.node, step, by_name[step.namespace, step.pod], given.timeout)
    return FAILED if any(step.how == STAYS for step in steps) else 0


def _undo(session: Session, node: Object, on_it: Sequence[Candidate]) -> int:
    name, told_to_go = node.metadata.name, [candidate for candidate in on_it if take_back(session.client, candidate)]
    stay = [f"{candidate.pod.object.metadata.namespace}/{candidate.pod.name}" for candidate in told_to_go]
    cordon(session.client, node, on=False)
    withdrawn = [f"pod {each} stays" for each in stay]
    document = {"node": name, "begun": False, "steps": [], "takenBack": stay}
    session.output.show(document, lambda: iter([*withdrawn, f"pods may start on {name} again"]))
    return 0


def _page(node: str, steps: Sequence[Step], *, begun: bool) -> Page:
    if not steps:
        yield f"no pod of a cluster runs on {node}"
    else:
        table = Columns("POD", "CLUSTER", "HOW", "NOTE")
        for step in steps:
            table.add(step.pod, f"{step.namespace}/{step.cluster.partition('/')[2]}", step.how, step.note)
        yield table
    if not begun:
        yield ""
        yield "Nothing was done. With --yes the node is cordoned, and one pod after another goes as above."
    if any(step.how == STAYS for step in steps):
        yield ""
        yield f"What stays is for you: kubectl drain {node} --ignore-daemonsets --delete-emptydir-data"


DRAIN = Command(
    _run,
    _add_arguments,
    details=(
        "Without -n, pods of all namespaces. The operator moves each pod: leaders go first, and where volumes are on "
        "the node, data and volumes move to another. Never two pods of a cluster at once. Exit code 1 when some stay. "
        "With --undo the pods on the node stay where they are, but for one whose data have left it already."
    ),
)
