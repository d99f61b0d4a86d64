"""The output of a diagnosis."""

from dataclasses import replace
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


def test_a_healthy_cluster_has_one_line_and_the_resources_that_were_not_read() -> None:
    expected = "TidbCluster shop/basic: no problem found\n\nNot read: nodes: nodes is forbidden\n"
    assert expected == rendered(page([Diagnosis(FACTS, [])]))


def test_warnings_are_counted_but_leave_a_cluster_healthy() -> None:
    warned = Diagnosis(FACTS, [finding(Severity.WARNING, "Pod a"), finding(Severity.WARNING, "Pod b")])
    assert warned.is_healthy
    assert rendered(page([warned])).startswith("TidbCluster shop/basic: 2 warnings\n")
    sick = Diagnosis(FACTS, [finding(Severity.PROBLEM, "Pod a"), *warned.findings])
    assert not sick.is_healthy
    assert rendered(page([sick])).startswith("TidbCluster shop/basic: 1 problem, 2 warnings\n")


def test_a_finding_names_up_to_three_objects_and_its_field_and_value() -> None:
    many = finding(Severity.PROBLEM, *(f"Pod {name}" for name in "abcde"), field="spec.pd.limits")
    assert "Problem Cause  Pod a, Pod b, Pod c and 2 more\n  is not as it should be\n  spec.pd.limits\n" in rendered(
        page([Diagnosis(FACTS, [many])])
    )
    valued = finding(Severity.PROBLEM, "Pod a", field="spec.pd.limits.cpu", value="1")
    assert "  spec.pd.limits.cpu: 1\n  Way out: Mend it.\n" in rendered(page([Diagnosis(FACTS, [valued])]))


def _of(name: str, *findings: Finding) -> Diagnosis:
    cluster = {"metadata": {"name": name, "namespace": "shop"}}
    return Diagnosis(replace(FACTS, cluster=cluster, unread={NODES: "nodes is forbidden"}), findings)


def test_several_clusters_share_findings_with_problems_first_and_warnings_folded() -> None:
    slow = replace(finding(Severity.PROBLEM, "Operator x"), reason="NoOperator")
    many = [
        _of("a", finding(Severity.WARNING, "Pod a", "Pod b"), finding(Severity.WARNING, "Pod c", field="spec.pd")),
        _of("b", slow, finding(Severity.WARNING, "Pod d")),
        _of("c", finding(Severity.PROBLEM, "Pod e", "Pod f"), slow),
        _of("d"),
    ]
    assert (
        "4 clusters: 2 with problems, 1 with warnings, 1 without findings\n\n"
        "Problem NoOperator  shop/b, shop/c\n  is not as it should be\n  Way out: Mend it.\n\n"
        "Problem Cause  shop/c Pod e, shop/c Pod f\n  is not as it should be\n  Way out: Mend it.\n\n"
        "Warning Cause  shop/a, shop/b\n"
        "`kubectl tidb doctor CLUSTER -n NAMESPACE` explains the warnings of a cluster.\n\n"
        "Not read: nodes: nodes is forbidden\n"
    ) == rendered(page(many))


def test_no_line_is_longer_than_the_terminal() -> None:
    long = finding(Severity.PROBLEM, "PersistentVolumeClaim " + "a" * 60, field="spec." + "b" * 90, value="c" * 40)
    assert all(len(line) <= 80 for line in rendered(page([Diagnosis(FACTS, [long] * 2)])).splitlines())


def test_the_document_names_resources_that_were_not_read() -> None:
    (told,) = document([Diagnosis(FACTS, [])])["clusters"]
    assert {"nodes": "nodes is forbidden"} == told["notLookedAt"]
    assert told["healthy"]
