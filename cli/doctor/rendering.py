"""A diagnosis as a page for people, or a document for programs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.padding import Padding
from rich.text import Text

from cli.doctor.facts import Facts
from cli.doctor.finding import Finding, Severity
from cli.tidb.output import BAD, FAINT, GOOD, UNDER_WAY, Page
from kube.objects import Json

_MOST = 3
"""The number of objects that a page names individually."""

_COLOURS = {Severity.PROBLEM: BAD, Severity.WARNING: UNDER_WAY}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings about one cluster, and what could not be read."""

    facts: Facts
    findings: Sequence[Finding]

    @property
    def is_healthy(self) -> bool:
        """True without problems; warnings do not count."""
        return all(finding.severity is not Severity.PROBLEM for finding in self.findings)

    @property
    def title(self) -> str:
        """The cluster's title on pages."""
        return f"{self.facts.kind} {self.place}" if self.facts.cluster else "No cluster"

    @property
    def place(self) -> str:
        """Namespace and name of the cluster."""
        return f"{self.facts.namespace}/{self.facts.name}"

    @property
    def verdict(self) -> str:
        """The numbers of problems and warnings, in words."""
        counts = {severity: sum(finding.severity is severity for finding in self.findings) for severity in Severity}
        counted = [f"{count} {severity.lower()}{'s' * (count > 1)}" for severity, count in counts.items() if count]
        return ", ".join(counted) or "no problem found"


def page(diagnoses: Sequence[Diagnosis]) -> Page:
    """All findings about one cluster; for several, their problems without duplicates, and a line for each warning."""
    if len(diagnoses) == 1:
        (only,) = diagnoses
        yield Text(f"{only.title}: {only.verdict}", GOOD if only.is_healthy else BAD)
        for finding in only.findings:
            yield Text()
            yield from _shown(finding)
    else:
        yield from _page_of_several(diagnoses)
    unread = {resource: why for diagnosis in diagnoses for resource, why in diagnosis.facts.unread.items()}
    for resource, why in unread.items():
        yield Text()
        yield Text(f"Not read: {resource}: {why}", FAINT)


def _page_of_several(diagnoses: Sequence[Diagnosis]) -> Page:
    sick = sum(not diagnosis.is_healthy for diagnosis in diagnoses)
    warned = sum(diagnosis.is_healthy and bool(diagnosis.findings) for diagnosis in diagnoses)
    counts = [(sick, "with problems"), (warned, "with warnings"), (len(diagnoses) - sick - warned, "without findings")]
    counted = ", ".join(f"{count} {what}" for count, what in counts if count)
    yield Text(f"{len(diagnoses)} clusters: {counted}", BAD if sick else GOOD)
    for finding in _problems(diagnoses):
        yield Text()
        yield from _shown(finding)
    warnings: dict[str, list[str]] = {}
    for diagnosis in diagnoses:
        for reason in {one.reason: None for one in diagnosis.findings if one.severity is Severity.WARNING}:
            warnings.setdefault(reason, []).append(diagnosis.place)
    if warnings:
        yield Text()
    for reason, places in warnings.items():
        yield Text.assemble((f"{Severity.WARNING} {reason}", _COLOURS[Severity.WARNING]), f"  {_some(places)}")
    if warnings:
        yield Text("`kubectl tidb doctor CLUSTER -n NAMESPACE` explains the warnings of a cluster.", FAINT)


def _problems(diagnoses: Sequence[Diagnosis]) -> Iterator[Finding]:
    """The problems of all clusters. One that several have is a single finding with the clusters as objects."""
    alike: dict[Finding, list[tuple[str, Finding]]] = {}
    for diagnosis in diagnoses:
        for finding in diagnosis.findings:
            if finding.severity is Severity.PROBLEM:
                alike.setdefault(replace(finding, objects=()), []).append((diagnosis.place, finding))
    for found in alike.values():
        (place, finding), *others = found
        if others:
            yield replace(finding, objects=tuple(dict.fromkeys(where for where, _ in found)))
        else:
            yield replace(finding, objects=tuple(f"{place} {one}" for one in finding.objects))


def _shown(finding: Finding) -> Page:
    heading = (f"{finding.severity} {finding.reason}", _COLOURS[finding.severity])
    yield Text.assemble(heading, f"  {_some(finding.objects)}")
    yield from (Padding(Text(line), (0, 0, 0, 2)) for line in _lines(finding))


def _some(objects: Sequence[str]) -> str:
    more = len(objects) - _MOST
    return ", ".join(objects[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _lines(finding: Finding) -> Iterator[str]:
    yield finding.message
    if finding.field:
        yield f"{finding.field}: {finding.value}" if finding.value else finding.field
    yield f"Way out: {finding.way_out}"


def document(diagnoses: Sequence[Diagnosis]) -> Json:
    """The document for programs."""
    return {"clusters": [_document(diagnosis) for diagnosis in diagnoses]}


def _document(diagnosis: Diagnosis) -> Json:
    return {
        "namespace": diagnosis.facts.namespace,
        "kind": diagnosis.facts.kind,
        "name": diagnosis.facts.name,
        "healthy": diagnosis.is_healthy,
        "findings": [
            {
                "severity": str(finding.severity),
                "reason": finding.reason,
                "objects": list(finding.objects),
                "message": finding.message,
                "field": finding.field,
                "value": finding.value,
                "wayOut": finding.way_out,
            }
            for finding in diagnosis.findings
        ],
        "notLookedAt": {str(resource): why for resource, why in diagnosis.facts.unread.items()},
    }
