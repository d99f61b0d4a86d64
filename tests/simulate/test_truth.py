"""Plans come true: `simulate.truth` finds no difference, and sees one that is planted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from kube.objects import Json
from rehearsal.change import Scene, change
from rehearsal.forecast import Floor, Forecast, Gap, Step
from simulate import truth
from simulate.engine.trees import merged
from simulate.families.generate import generated
from simulate.main import main
from simulate.run import Outcome, prepare

PLANNED = Forecast(
    end="done",
    message="",
    seconds=20.0,
    steps=[
        Step("basic-tikv-1", "tikv", "restarts", 1.0, 6.0),
        Step("basic-tikv-0", "tikv", "restarts", 7.0, 12.0),
        Step("basic-tidb-0", "tidb", "restarts", 13.0, 20.0),
    ],
    floors=[Floor("tikv", 2, 1)],
    gaps=[Gap("tidb", 13.0, 7.0, 0, 1)],
)


def compared(name: str) -> Outcome:
    """The comparison of the change that a plan of the simulator makes."""
    (plan,) = truth.changes([generated(name)])
    return truth.plan_comes_true(prepare(plan), plan)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "pair/tikv-upgrade+tidb-label@0",
        pytest.param("pair/pd-config+tiflash-config@0", marks=pytest.mark.thorough),
        pytest.param("flip/221", marks=pytest.mark.thorough),
        pytest.param("order/tiproxy+tiflash+ticdc+pump+pdms+tls", marks=pytest.mark.thorough),
    ],
)
def test_what_is_planned_on_a_twin_happens_in_the_world(name: str) -> None:
    assert not compared(name).violations


@pytest.mark.slow
def test_another_change_than_the_planned_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_less(scene: Scene, after: Sequence[Json]) -> Mapping[str, Forecast]:
        return change(scene, [merged(each, {"spec": {"tidb": {"labels": None}}}) for each in after])

    monkeypatch.setattr(truth, "change", of_less)
    found = [each.what for each in compared("pair/tikv-upgrade+tidb-label@0").violations]
    assert any(each.startswith("steps: planned") and "tidb" in each for each in found)


@pytest.mark.parametrize(
    ("happened", "what"),
    [
        ({"end": "stuck"}, "end"),
        ({"warnings": ["spec.x has no effect"]}, "warnings"),
        ({"floors": [Floor("tikv", 2, 0)]}, "lowest"),
        ({"gaps": []}, "gaps"),
        ({"steps": PLANNED.steps[1:]}, "steps"),
        ({"steps": [*PLANNED.steps, Step("basic-pd-0", "pd", "restarts", 30.0, None)]}, "steps"),
        ({"steps": [replace(PLANNED.steps[0], begins=10.0), *PLANNED.steps[1:]]}, "order"),
    ],
)
def test_each_part_of_a_forecast_is_compared(happened: Json, what: str) -> None:
    (found,) = truth.differences(PLANNED, replace(PLANNED, **happened))
    assert found.startswith(f"{what}: planned ")


def test_steps_that_begin_together_have_no_order() -> None:
    together = replace(PLANNED, steps=[replace(PLANNED.steps[0], begins=8.0), *PLANNED.steps[1:]])
    assert not list(truth.differences(PLANNED, together))


def test_a_refusal_is_compared_with_its_sentence() -> None:
    refused = replace(PLANNED, end="refused", message="spec.tikv.replicas: 0")
    (found,) = truth.differences(refused, replace(refused, message="spec.pd.replicas: 0"))
    assert found == "end: planned ('refused', 'spec.tikv.replicas: 0'), happened ('refused', 'spec.pd.replicas: 0')"


def test_two_plans_with_the_same_change_are_one() -> None:
    same = [generated("pair/tikv-upgrade+tidb-label@0"), generated("pair/tikv-upgrade+tidb-label@1")]
    assert len(list(truth.changes(same))) == 1


@pytest.mark.slow
def test_the_command_counts_differences(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(truth, "differences", lambda _planned, _happened: ["steps: planned [], happened []"])
    assert main(["--jobs", "1", "truth", "field/tidb.image"]) == 1
    printed = capsys.readouterr().out
    assert "1 plans compared with what happened, 1 differ" in printed
    assert "see it again: python -m simulate truth field/tidb.image" in printed
