"""Server-side apply: one manager's fields, merged with other managers' fields."""

from collections.abc import Mapping
from dataclasses import dataclass

from kube.objects import Json
from sandbox.apiserver import managed_fields, schemas
from sandbox.apiserver.kinds import Kind
from sandbox.apiserver.managed_fields import Path, Record
from sandbox.apiserver.refusals import Refusal, bad_request

MEDIA_TYPE = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Apply:
    """An apply: manager, time, object or status, and `force`."""

    manager: str
    time: str
    force: bool = False
    subresource: str = ""


def checked(body: object) -> Json:
    """The body of an apply, without nulls. Raises Refusal (400)."""
    if not isinstance(body, dict):
        raise bad_request("error decoding YAML: the patch is no object")
    if (body.get("metadata") or {}).get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    return _without_nulls(body)


def schema_of(kind: Kind) -> Json:
    """The schema that determines how lists merge."""
    return kind.custom.schema if kind.custom else schemas.of(kind.resource)


def created(kind: Kind, applied: Json, how: Apply) -> Json:
    """The `metadata.managedFields` of a new object."""
    record = _record(kind, applied, how)
    return {"managedFields": [record.tree()] if record.paths else []}


def applied_to(kind: Kind, current: Json, applied: Json, how: Apply) -> Json:
    """The object after an apply, with its records. Raises Refusal (409) for fields of other managers."""
    schema = schema_of(kind)
    mine, others = _record(kind, applied, how), _records(kind, current, how)
    before = next((record.paths for record in others if record.is_of(mine)), frozenset())
    others = [record for record in others if not record.is_of(mine)]
    there, wanted = managed_fields.leaves(current, schema), managed_fields.leaves(applied, schema)
    taken = {path for path, value in wanted.items() if there.get(path) != value}
    conflicts = [(record, path) for record in others for path in sorted(record.paths & taken)]
    if conflicts and not how.force:
        raise _conflict(conflicts)
    managed = {path for record in others for path in record.paths}
    result = managed_fields.without(current, before - mine.paths - managed)
    result = dict(managed_fields.merged(result, applied, schema))
    kept = [_less(record, taken) for record in others]
    managed_fields.write(result, [*kept, mine])
    return result


def updated(kind: Kind, old: Json, new: Json, how: Apply) -> None:
    """Record that the updating manager owns the changed fields of an object that was applied before."""
    records = managed_fields.read(old)
    if not records:
        return
    schema = schema_of(kind)
    before, after = managed_fields.leaves(old, schema), managed_fields.leaves(new, schema)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    mine = Record(how.manager, "Update", kind.resource.api_version, how.time, frozenset(changed & after.keys()))
    known = next((record.paths for record in records if record.is_of(mine)), frozenset())
    mine = Record(mine.manager, mine.operation, mine.api_version, mine.time, (known & after.keys()) | mine.paths)
    managed_fields.write(new, [*(_less(each, changed) for each in records if not each.is_of(mine)), mine])


def _record(kind: Kind, applied: Json, how: Apply) -> Record:
    paths = frozenset(managed_fields.leaves(applied, schema_of(kind)))
    return Record(how.manager, "Apply", kind.resource.api_version, how.time, paths, how.subresource)


def _records(kind: Kind, current: Json, how: Apply) -> list[Record]:
    if known := managed_fields.read(current):
        return known
    paths = frozenset(managed_fields.leaves(current, schema_of(kind)))
    return [Record(managed_fields.BEFORE, "Update", kind.resource.api_version, how.time, paths)]


def _less(record: Record, paths: set[Path]) -> Record:
    return Record(
        record.manager, record.operation, record.api_version, record.time, record.paths - paths, record.subresource
    )


def _conflict(conflicts: list[tuple[Record, Path]]) -> Refusal:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f'conflict with "{record.manager}" using {record.api_version}',
            "field": managed_fields.shown(path),
        }
        for record, path in conflicts
    ]
    told = "; ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    count = f"{len(causes)} conflict{'s' if len(causes) > 1 else ''}"
    return Refusal(409, "Conflict", f"Apply failed with {count}: {told}", {"causes": causes})


def _without_nulls(tree: Mapping[str, object]) -> Json:
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in tree.items()
        if value is not None
    }
