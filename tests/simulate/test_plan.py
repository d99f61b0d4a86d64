"""Plans as YAML files: their contents, and the errors for invalid ones."""

import pytest

from ports.transport import Request
from simulate.engine.calls import Call, Port, call
from simulate.engine.plan import Crash, Edit, InvalidPlan, Plan, dump, parse
from simulate.engine.write_addresses import WriteCounts, address
from simulate.families.generate import generated
from simulate.families.seeds import random_plan


def test_a_plan_survives_being_written_and_read() -> None:
    for plan in (generated("tikv-out/crash-before-2"), random_plan(1), random_plan(2)):
        assert plan == parse(dump(plan))


def test_parses_the_edits_and_faults_of_a_plan() -> None:
    text = "{name: x, edits: [{at: 1, spec: {paused: true}}], faults: [{fault: crash, write: 3, when: before}]}"
    edits, faults = (Edit(at=1, spec={"paused": True}),), (Crash(write=3, when="before"),)

    assert Plan(name="x", edits=edits, faults=faults) == parse(text)


def test_only_events_at_a_fixed_time_are_postponed() -> None:
    assert Edit(at=3.5, spec={"paused": True}) == Edit(at=1.0, spec={"paused": True}).postponed(2.5)
    for waiting in (Crash(write=3), Edit(once="pods/basic-pd-3", later=1.0)):
        assert waiting == waiting.postponed(2.5)


def test_a_fault_with_a_glob_counts_only_matching_writes() -> None:
    crash = Crash(write=2, of="PATCH pods *", when="before")
    counts = WriteCounts([crash])
    writes = [_written(method, kind) for method, kind in (("POST", "pods"), ("PATCH", "pods"), ("PATCH", "services"))]
    assert [[("", 1)], [("", 2), ("PATCH pods *", 1)], [("", 3)]] == [list(counts.sent(each)) for each in writes]
    assert address(crash) in counts.sent(writes[1])


def _written(method: str, kind: str) -> Call:
    return call("operator", 1, Port.KUBERNETES, Request(method, f"http://api/api/v1/namespaces/default/{kind}/a"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{name: x, faults: [{fault: crash, write: a}]}",
            "Expected `int | null`, got `str` - at `$.faults[0].write`: 'a'",
        ),
        ("{name: x, faults: [{fault: crush, write: 1}]}", "Invalid value 'crush' - at `$.faults[0].fault`: 'crush'"),
        (
            "{name: x, faults: [{fault: crash, at: 1, of: PATCH *}]}",
            "`of` 'PATCH *' says of which writes `write` is the number, and there is none - at `$.faults[0]`: "
            "{'fault': 'crash', 'at': 1, 'of': 'PATCH *'}",
        ),
        ("{name: x, buget: 3}", "Object contains unknown field `buget`: {'name': 'x', 'buget': 3}"),
        (
            "{name: x, edits: [{spec: {}}]}",
            "exactly one of `at`, `write` and `once` says when, not at=None, write=None and once='' - at "
            "`$.edits[0]`: {'spec': {}}",
        ),
    ],
)
def test_an_invalid_plan_is_refused_with_the_field_and_its_value(text: str, message: str) -> None:
    with pytest.raises(InvalidPlan) as caught:
        parse(text)

    assert message == str(caught.value)


def test_refuses_a_name_that_is_no_plan() -> None:
    with pytest.raises(InvalidPlan, match="'tikv-out/crush-3' is no file"):
        generated("tikv-out/crush-3")
