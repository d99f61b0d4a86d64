"""The references of oracles and lasting invariants."""

import re

import pytest

from kube.objects import Json
from simulate import invariants
from simulate.engine.plan import Crash, Edit, Plan, Stale
from simulate.engine.trees import difference, merged
from simulate.judge.judge import QuietTime
from simulate.oracles import direct_plan


def test_every_invariant_is_judged_or_covered_by_an_oracle() -> None:
    judged = {*invariants.ON_WRITE, *invariants.ON_STATE, *invariants.LASTING}
    stood_for = set(re.findall(r"\bI\d+\b", invariants.__doc__ or ""))
    assert set() == {f"I{number}" for number in range(1, 41)} - judged - stood_for


def _plan(*specs: Json) -> Plan:
    return Plan(name="p", edits=tuple(Edit(at=float(number), spec=spec) for number, spec in enumerate(specs)))


def _label(value: str | None) -> Json:
    return {"tidb": {"labels": {"team": value}}}


@pytest.mark.rule("O6")
def test_the_direct_plan_has_no_edits_if_the_spec_returns_to_its_start() -> None:
    direct = direct_plan(_plan(_label("a"), {"tidb": {"labels": None}}))
    assert direct is not None
    assert () == direct.edits


@pytest.mark.rule("O6")
def test_the_direct_plan_leaves_out_reverted_edits() -> None:
    direct = direct_plan(_plan({"pd": {"version": "v1"}, "tikv": {"version": "v2"}}, {"pd": {"version": None}}))
    assert direct is not None
    assert [{"tikv": {"version": "v2"}}] == [edit.spec for edit in direct.edits]


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(_plan(_label("a"), _label("b")), id="nothing is taken back"),
        pytest.param(_plan({"tikv": {"replicas": 5}}, {"tikv": {"replicas": 3}}), id="volumes stay"),
    ],
)
@pytest.mark.rule("O6")
def test_some_plans_have_no_direct_plan(plan: Plan) -> None:
    assert direct_plan(plan) is None


def test_a_merge_patch_turns_one_tree_into_another() -> None:
    old: Json = {"a": {"b": 1, "c": [1]}, "d": 2, "e": {"f": 3}}
    new: Json = {"a": {"b": 1, "c": [2]}, "e": {"f": 3}, "g": {"h": 4}}
    patch = difference(old, new)
    assert {"a": {"c": [2]}, "d": None, "g": {"h": 4}} == patch
    assert new == merged(old, patch)


def test_quiet_time_begins_when_the_last_fault_ends() -> None:
    quiet = QuietTime([Stale(at=10.0, seconds=20.0), Crash(write=3, seconds=5.0)])
    assert [0.0, None, 30.0] == [quiet.since(at) for at in (9.0, 29.0, 31.0)]
    quiet.wrote([("", 3)], 40.0)
    assert [None, 45.0] == [quiet.since(at) for at in (44.0, 50.0)]
