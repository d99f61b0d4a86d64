import pytest

from informers.handlers import (
    FilteringResourceEventHandler,
    ResourceEventHandlerDetailedFuncs,
    ResourceEventHandlerFuncs,
)
from informers.tombstones import DeletedFinalStateUnknown, LastKnown, last_known_object
from tests.informers.support import Recorder, pod_object

RED, REDDER, BLUE = pod_object("a", "1", color="red"), pod_object("a", "2", color="red"), pod_object("a", "3")


@pytest.mark.rule("INF-21")
def test_functions_that_are_left_out_are_not_missed() -> None:
    told: list[object] = []
    ResourceEventHandlerFuncs().on_add(RED, True)
    handler = ResourceEventHandlerFuncs(on_add=told.append, on_delete=told.append)
    handler.on_add(RED, True)
    handler.on_update(RED, BLUE)
    handler.on_delete(BLUE)
    assert [RED, BLUE] == told


@pytest.mark.rule("INF-21")
def test_the_detailed_form_receives_the_flag_of_the_initial_list() -> None:
    told: list[object] = []
    handler = ResourceEventHandlerDetailedFuncs(
        on_add=lambda obj, initial: told.append((obj, initial)), on_update=lambda old, new: told.append((old, new))
    )
    handler.on_add(RED, True)
    handler.on_update(RED, BLUE)
    handler.on_delete(BLUE)
    assert [(RED, True), (RED, BLUE)] == told


def _is_red(obj: LastKnown) -> bool:
    known = last_known_object(obj)
    return known is not None and known.metadata.labels.get("color") == "red"


@pytest.mark.rule("INF-21")
def test_a_filter_turns_updates_across_its_border_into_additions_or_deletions() -> None:
    recorder = Recorder()
    handler = FilteringResourceEventHandler(_is_red, recorder)
    handler.on_update(RED, REDDER)
    handler.on_update(BLUE, RED)
    handler.on_update(RED, BLUE)
    handler.on_update(BLUE, BLUE)
    handler.on_add(RED, True)
    handler.on_add(BLUE, True)
    handler.on_delete(DeletedFinalStateUnknown("ns/a", RED))
    handler.on_delete(DeletedFinalStateUnknown("ns/a", None))
    assert ["update a@1 a@2", "add a@1", "delete a@1", "add a@1", "tombstone a@1"] == recorder.told
    assert [False, True] == recorder.initial
