"""What reconciles call does not grow unseen (`make walk`, bench/walk.json)."""

from collections.abc import Sequence

import pytest

from bench.walk import Figures, Walk, at_rest, grown, recorded, writing

_TOLERANCE = 0.05
_HINT = "if it has to be so, record it: make walk RECORD=1"


def more_than_recorded(walks: Sequence[Walk]) -> dict[str, str]:
    before = recorded()
    return {walk.name: more for walk in walks if (more := grown(walk.figures, before[walk.name], _TOLERANCE))}


@pytest.mark.slow
def test_no_reconcile_at_rest_or_in_a_roll_calls_more_than_recorded() -> None:
    assert {} == more_than_recorded(at_rest()), _HINT


@pytest.mark.thorough
def test_no_write_has_a_deeper_stack_or_more_calls_before_it_than_recorded() -> None:
    before, walks = recorded(), writing()

    assert {} == more_than_recorded(walks), _HINT
    deeper = [
        walk.name
        for walk in walks
        for now, then in [(walk.figures, before[walk.name])]
        if now.frames > then.frames or now.files > then.files or now.switches > then.switches
    ]
    assert [] == deeper, _HINT


def test_growth_within_the_tolerance_is_not_reported() -> None:
    assert "" == grown(Figures(105), Figures(100), 0.05)


def test_growth_is_reported_with_the_files_that_grew_the_most_first() -> None:
    before = Figures(100, by_file={"member/pd.py": 60, "kube/apply.py": 40})
    now = Figures(150, by_file={"member/pd.py": 75, "kube/apply.py": 35, "apis/new.py": 40})

    assert "150 calls where 100 were recorded: apis/new.py +40, member/pd.py +15" == grown(now, before, 0.05)
