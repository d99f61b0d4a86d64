"""Questions of kube-scheduler, and the answers that it can read (scheduler-deployment.md 2.3)."""

import json

import pytest

from scheduler.protocol import (
    Answer,
    BadQuestion,
    Victims,
    read_preemption,
    read_question,
    write_answer,
    write_preemption,
    write_priorities,
)
from tests.scheduler.worlds import body, node

POD = {"metadata": {"name": "db-pd-0", "namespace": "ns"}}


@pytest.mark.parametrize("spell", [str, str.lower, str.upper])
@pytest.mark.rule("scheduler-deployment-2.3")
def test_keys_are_read_in_any_case(spell: type[str]) -> None:
    question = read_question(body({spell("Pod"): POD, spell("NodeNames"): ["a"], spell("Nodes"): None}))
    assert ("db-pd-0", ["a"]) == (question.pod.metadata.name, question.names)


@pytest.mark.rule("scheduler-deployment-2.3")
def test_whole_nodes_are_answered_with_whole_nodes() -> None:
    question = read_question(body({"Pod": POD, "Nodes": {"items": [node("a"), node("b")]}, "NodeNames": None}))
    answer = json.loads(write_answer(question, Answer(("b",), {"a": "why"})))
    assert [node("b")] == answer["Nodes"]["items"]
    assert (None, {"a": "why"}, "") == (answer["NodeNames"], answer["FailedNodes"], answer["Error"])


@pytest.mark.rule("scheduler-deployment-2.3")
def test_names_are_answered_with_names_where_v1_6_crashes() -> None:
    question = read_question(body({"Pod": POD, "Nodes": None, "NodeNames": ["a", "b"]}))
    answer = json.loads(write_answer(question, Answer(("b", "a"))))
    assert (None, ["a", "b"]) == (answer["Nodes"], answer["NodeNames"])


@pytest.mark.rule("scheduler-deployment-2.3")
def test_victims_are_read_whole_or_by_uid_and_violations_are_kept() -> None:
    whole = {"Pod": POD, "NodeNameToVictims": {"a": {"Pods": [{"metadata": {"uid": "1"}}], "NumPDBViolations": 2}}}
    named = {"pod": POD, "nodeNameToMetaVictims": {"a": {"pods": [{"UID": "1"}], "numPDBViolations": 2}}}
    expected = {"a": Victims(("1",), 2)}
    assert expected == read_preemption(body(whole)).victims == read_preemption(body(named)).victims
    assert {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "1"}], "NumPDBViolations": 2}}} == json.loads(
        write_preemption(expected)
    )


@pytest.mark.rule("scheduler-deployment-2.3")
def test_all_nodes_have_equal_priority() -> None:
    assert [{"Host": "a", "Score": 0}, {"Host": "b", "Score": 0}] == json.loads(write_priorities(["a", "b"]))


@pytest.mark.parametrize(
    ("sent", "what"),
    [
        (b"", "the request"),
        (b"[]", "the request"),
        (b"\xff", "the request"),
        (b"{}", "Pod is missing"),
        (body({"Pod": {}}), "Pod: "),
        (body({"Pod": POD, "NodeNames": [1]}), "nodenames: "),
        (body({"Pod": POD, "Nodes": {"items": [{}]}}), "Node: "),
        (body({"Pod": POD, "Nodes": []}), "Nodes: "),
        (body({"Pod": POD, "NodeNames": ["n"] * 20_001}), "nodenames: 20001 nodes"),
        (body({"Pod": POD, "NodeNames": ["n" * 6_000_000]}), "nodenames: more than"),
        (body({"Pod": POD, "Nodes": {"items": [{}] * 20_001}}), "Nodes: 20001 nodes"),
    ],
)
@pytest.mark.rule("scheduler-deployment-2.3")
def test_names_the_malformed_part(sent: bytes, what: str) -> None:
    with pytest.raises(BadQuestion, match=what):
        read_question(sent)
