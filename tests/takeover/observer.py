"""An operator that only observes, in the sandbox: what it would write, as `--observe` sees it."""

from controller_manager.observing import PlannedWrites, comparable
from dataplane.read_only import ReadOnlyTransport
from kube.dry_run import DryRunTransport, PlannedWrite
from kube.objects import Json
from member.labels import LAST_APPLIED
from simulate.operator import Operator
from tests.operator_world import OperatorWorld

NOTE = "note"
"""In place of `patch`: nothing but the record of what was applied would be written anew."""


def planned_writes(world: OperatorWorld, seconds: float = 35.0) -> list[str]:
    """What an observer would write in that time, one line each: `verb resource name`, or the call of a component.

    The operator of the world is another one afterwards, which has not looked yet.
    """
    planned: list[PlannedWrite] = []
    report = PlannedWrites(planned.append)
    world.operator = Operator(
        world.world,
        world.clock,
        2,
        kubernetes=lambda transport: DryRunTransport(transport, report.add),
        dataplane=lambda transport: ReadOnlyTransport(transport, report.add_call),
    )
    world.run(seconds)
    world.restart()
    return [f"{_verb(each)} {each.resource} {each.name}".rstrip() for each in planned]


def _verb(write: PlannedWrite) -> str:
    before, after = (_without_record(comparable(each)) for each in (write.before, write.after))
    return NOTE if write.verb == "patch" and before == after else write.verb


def _without_record(tree: Json | None) -> Json | None:
    if tree is None:
        return None
    annotations = {
        key: text for key, text in (tree["metadata"].get("annotations") or {}).items() if key != LAST_APPLIED
    }
    return tree | {"metadata": tree["metadata"] | {"annotations": annotations}}
