"""A diagnosis as a page for people, or a document for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.padding import Padding
from rich.text import Text

from cli.doctor.facts import Facts
from cli.doctor.finding import Finding, Severity
from cli.tidb.output import BAD, FAINT, GOOD, UNDER_WAY, Page
from kube.objects import Json

_MOST = 3
"""Objects that a page names one by one."""

_COLOURS = {Severity.PROBLEM: BAD, Severity.WARNING: UNDER_WAY}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found of one cluster, and what could not be looked at."""

    facts: Facts
    findings: Sequence[Finding]

    @property
    def is_healthy(self) -> bool:
        """Whether there is no problem; warnings do not count."""
        return all(each.severity is not Severity.PROBLEM for each in self.findings)

    @property
    def title(self) -> str:
        """The cluster as pages name it."""
        return f"TidbCluster {self.facts.namespace}/{self.facts.name}" if self.facts.cluster else "No cluster"


def page(diagnoses: Sequence[Diagnosis]) -> Page:
    """All of it, one finding after the other: which, where, what, and the way out."""
    for number, each in enumerate(diagnoses):
        if number:
            yield Text()
        yield Text(f"{each.title}: {_verdict(each)}", GOOD if each.is_healthy else BAD)
        for finding in each.findings:
            yield Text()
            yield from _shown(finding)
        for resource, why in each.facts.unread.items():
            yield Text()
            yield Text(f"Not looked at: {resource}: {why}", FAINT)


def _verdict(diagnosis: Diagnosis) -> str:
    counts = {severity: sum(each.severity is severity for each in diagnosis.findings) for severity in Severity}
    told = [f"{count} {severity.lower()}{'s' * (count > 1)}" for severity, count in counts.items() if count]
    return ", ".join(told) or "no problem found"


def _shown(finding: Finding) -> Page:
    more = len(finding.objects) - _MOST
    objects = ", ".join(finding.objects[:_MOST]) + (f" and {more} more" if more > 0 else "")
    yield Text.assemble((f"{finding.severity} {finding.reason}", _COLOURS[finding.severity]), f"  {objects}")
    yield from (Padding(Text(line), (0, 0, 0, 2)) for line in _lines(finding))


def _lines(finding: Finding) -> Iterator[str]:
    yield finding.message
    if finding.field:
        yield f"{finding.field}: {finding.value}" if finding.value else finding.field
    yield f"Way out: {finding.way_out}"


def document(diagnoses: Sequence[Diagnosis]) -> Json:
    """The same for programs."""
    return {"clusters": [_document(each) for each in diagnoses]}


def _document(diagnosis: Diagnosis) -> Json:
    return {
        "namespace": diagnosis.facts.namespace,
        "name": diagnosis.facts.name,
        "healthy": diagnosis.is_healthy,
        "findings": [
            {
                "severity": str(each.severity),
                "reason": each.reason,
                "objects": list(each.objects),
                "message": each.message,
                "field": each.field,
                "value": each.value,
                "wayOut": each.way_out,
            }
            for each in diagnosis.findings
        ],
        "notLookedAt": {str(resource): why for resource, why in diagnosis.facts.unread.items()},
    }
