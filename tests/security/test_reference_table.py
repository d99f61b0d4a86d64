"""The table of references in docs/security.md has every field, and every field that needs consent is tested."""

from dataclasses import replace

from apis.references import DOCUMENT, REFERENCES, Reach, ReferenceField, document, named_fields
from tests.security.references import (
    DASHBOARDS,
    EVERYWHERE,
    JOBS_OF,
    JOINING,
    MONITORS,
    SCHEDULE,
    SELECTING,
)

EVERY_CASE = (*MONITORS, *DASHBOARDS, *JOBS_OF, *JOINING, SCHEDULE, SELECTING)


def test_every_field_that_names_something_has_one_row() -> None:
    rows = {field: [row for row in REFERENCES if row.covers(*field)] for field in named_fields()}
    assert {} == {field: len(found) for field, found in rows.items() if len(found) != 1}


def test_no_row_is_about_a_missing_field() -> None:
    def is_known(row: ReferenceField, path: str) -> bool:
        one = replace(row, paths=(path,))
        return path.startswith("metadata.") or any(one.covers(*field) for field in fields)

    fields = {*named_fields(), ("TidbMonitor", EVERYWHERE.name)}
    assert [] == [(row.kinds, path) for row in REFERENCES for path in row.paths if not is_known(row, path)]


def test_every_reference_that_needs_consent_is_tested() -> None:
    tested = [(case.resource.kind, case.name.partition(" ")[0]) for case in EVERY_CASE]
    rows = [row for row in REFERENCES if row.reach is Reach.CONSENT]
    untested = [
        (kind, row.paths)
        for row in rows
        for kind in row.kinds
        if not any(replace(row, kinds=(kind,)).covers(*each) for each in tested)
    ]
    assert [] == untested


def test_the_document_has_the_table() -> None:
    assert document() == DOCUMENT.read_text(encoding="utf-8"), "run python -m apis.references"
