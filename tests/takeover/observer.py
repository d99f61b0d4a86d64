"""An observing operator in the sandbox, and the writes that it would make with `--observe`."""

from controller_manager.observing import PlannedWrites, comparable
from dataplane.read_only import ReadOnlyTransport
from kube.dry_run import DryRunTransport, PlannedWrite
from kube.objects import Json
from member.labels import LAST_APPLIED, START_SCRIPT_OPTIONS, WRITTEN_FOR
from rehearsal.operator import Operator
from tests.operator_world import OperatorWorld

NOTE = "note"
"""A substitute for `patch`: it would change only the records of what was applied, and for what."""

_NOTES = (LAST_APPLIED, START_SCRIPT_OPTIONS, WRITTEN_FOR)


def planned_writes(world: OperatorWorld, seconds: float = 35.0) -> list[str]:
    """The writes that an observer would make in that time, one line each: `verb resource name`, or the call of a
    component.

    Afterwards the world has another operator, which has not started yet.
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
    before, after = (_without_notes(comparable(each)) for each in (write.before, write.after))
    return NOTE if write.verb == "patch" and before == after else write.verb


def _without_notes(tree: Json | None) -> Json | None:
    if tree is None:
        return None
    there = tree["metadata"].get("annotations") or {}
    annotations = {key: text for key, text in there.items() if key not in _NOTES}
    return tree | {"metadata": tree["metadata"] | {"annotations": annotations}}
