"""Values of wrong types that the definitions accept: a refusal, never an exception.

All 5,000 are `python -m simulate mutants 0 5000`, a part of `make simulate`.
"""

from collections import Counter

import pytest

from apis import decoding
from simulate.manifests import type_mutants
from simulate.manifests.newcomers import DEFECT
from simulate.manifests.rich_specs import KINDS
from simulate.manifests.type_mutants import judge

_FIRST = 120
_WITH_A_WRONG_TREE = range(30, 40)
"""Seeds of which one reaches code that reads an embedded tree."""


@pytest.mark.slow
def test_no_value_of_a_wrong_type_causes_an_exception() -> None:
    verdicts = judge(range(_FIRST))
    assert [] == [each for each in verdicts if each.outcome == DEFECT]
    ends = Counter(each.outcome for each in verdicts)
    assert ends["reconciled"] > _FIRST / 4, ends


@pytest.mark.slow
def test_specs_are_valid_before_mutation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type_mutants, "_mutated", lambda _draw, tree: tree)
    verdicts = judge(range(len(KINDS)))
    assert ["reconciled"] * len(verdicts) == [each.outcome for each in verdicts]
    assert [] == [each for each in verdicts if '"InvalidSpec"' in each.told]


@pytest.mark.slow
def test_reports_an_unchecked_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_check_embedded", lambda *_: None)
    assert DEFECT in {each.outcome for each in judge(_WITH_A_WRONG_TREE)}
