"""How a diagnosis is shown."""

from datetime import UTC, datetime

from cli.doctor.facts import Facts
from cli.doctor.finding import Finding, Severity
from cli.doctor.rendering import Diagnosis, document, page
from cli.tidb.output import rendered
from kube.resources import NODES

FACTS = Facts(
    now=datetime(2026, 1, 1, tzinfo=UTC),
    namespace="shop",
    cluster={"metadata": {"name": "basic", "namespace": "shop"}},
    unread={NODES: "nodes is forbidden"},
)


def finding(severity: Severity, *objects: str, field: str = "", value: str = "") -> Finding:
    """A finding in a few words."""
    return Finding(severity, "Cause", objects, "is not as it should be", field, value, "Mend it.")


def test_a_healthy_cluster_is_one_line_and_what_was_not_looked_at() -> None:
    expected = "TidbCluster shop/basic: no problem found\n\nNot looked at: nodes: nodes is forbidden\n"
    assert expected == rendered(page([Diagnosis(FACTS, [])]))


def test_warnings_are_counted_and_are_no_problem() -> None:
    warned = Diagnosis(FACTS, [finding(Severity.WARNING, "Pod a"), finding(Severity.WARNING, "Pod b")])
    assert warned.is_healthy
    assert rendered(page([warned])).startswith("TidbCluster shop/basic: 2 warnings\n")
    sick = Diagnosis(FACTS, [finding(Severity.PROBLEM, "Pod a"), *warned.findings])
    assert not sick.is_healthy
    assert rendered(page([sick])).startswith("TidbCluster shop/basic: 1 problem, 2 warnings\n")


def test_a_finding_names_three_objects_and_the_field_as_far_as_it_is_known() -> None:
    many = finding(Severity.PROBLEM, *(f"Pod {name}" for name in "abcde"), field="spec.pd.limits")
    assert "Problem Cause  Pod a, Pod b, Pod c and 2 more\n  is not as it should be\n  spec.pd.limits\n" in rendered(
        page([Diagnosis(FACTS, [many])])
    )
    valued = finding(Severity.PROBLEM, "Pod a", field="spec.pd.limits.cpu", value="1")
    assert "  spec.pd.limits.cpu: 1\n  Way out: Mend it.\n" in rendered(page([Diagnosis(FACTS, [valued])]))


def test_no_line_is_longer_than_the_terminal() -> None:
    long = finding(Severity.PROBLEM, "PersistentVolumeClaim " + "a" * 60, field="spec." + "b" * 90, value="c" * 40)
    assert all(len(line) <= 80 for line in rendered(page([Diagnosis(FACTS, [long] * 2)])).splitlines())


def test_a_document_names_what_was_not_looked_at() -> None:
    (told,) = document([Diagnosis(FACTS, [])])["clusters"]
    assert {"nodes": "nodes is forbidden"} == told["notLookedAt"]
    assert told["healthy"]
