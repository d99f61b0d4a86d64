"""`br restore`: restores a backup into a cluster without its tables; `br abort restore` undoes it.

Progress is recorded in a checkpoint in the cluster: a run after a killed one continues there.
"""

import json
from dataclasses import dataclass, field

from sandbox.dataplane.br import meta
from sandbox.dataplane.br.meta import File, Meta
from sandbox.dataplane.br.run import Failed, Run
from sandbox.dataplane.tables import Table, Tables

_CHECKPOINT = b"a/__TiDB_BR_Temporary_Snapshot_Restore_Checkpoint"


@dataclass(slots=True)
class _Checkpoint:
    """The backup, the created tables by their old ids, and the restored files."""

    cluster: int
    end: int
    tables: dict[int, Table] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    def save(self, tables: Tables) -> None:
        """Write the checkpoint into the cluster."""
        made = {old: [new.schema, new.name, new.id, new.columns] for old, new in self.tables.items()}
        told = {"cluster": self.cluster, "end": self.end, "tables": made, "done": self.done}
        tables.content.put(_CHECKPOINT, json.dumps(told).encode(), tables.now())


def restore(run: Run) -> None:
    """Run the restore. Raises Failed, OSError."""
    saved = read(run)
    meant = {table.id: table for table in saved.tables if run.request.means_table(table)}
    files = [each for each in saved.files if each.table in meant]
    checkpoint = _begin(run, saved, meant)
    for number, file in enumerate(files, 1):
        if file.name not in checkpoint.done:
            _ingest(run, checkpoint, file)
        run.progress(number, len(files))
    _forget(run.cluster().tables)
    if not files:
        run.progress(1, 1)
    run.note("INFO", f"{run.request.title} success", f"total-ranges={len(files)}", f"RestoreTS={saved.end}")


def abort(run: Run) -> None:
    """Undo a restore that did not finish. Raises Failed."""
    tables = run.cluster().tables
    checkpoint = _left(tables)
    if checkpoint is None:
        run.note("INFO", "no matching task found to abort")
        return
    for table in checkpoint.tables.values():
        tables.drop_table(table)
        run.work_on_a_region()
    _forget(tables)
    run.note("INFO", "abort restore success")


def read(run: Run) -> Meta:
    """The meta of the backup. Raises Failed, OSError."""
    if meta.NAME not in run.files.names():
        raise Failed("[BR:Common:ErrInvalidMetaFile]backupmeta not found: is the backup complete?")
    try:
        return meta.decode(run.files.read(meta.NAME))
    except ValueError as error:
        raise Failed(f"[BR:Common:ErrInvalidMetaFile]parse backupmeta failed: {error}") from error


def _begin(run: Run, saved: Meta, meant: dict[int, Table]) -> _Checkpoint:
    """Create the tables, or continue an earlier run. Raises Failed."""
    tables = run.cluster().tables
    checkpoint = _left(tables)
    if checkpoint is None:
        _require_fresh(run, tables, meant)
        checkpoint = _Checkpoint(saved.cluster, saved.end)
        checkpoint.save(tables)
    elif (checkpoint.cluster, checkpoint.end) != (saved.cluster, saved.end):
        raise Failed("the cluster has the checkpoint of another restore: abort that one first")
    for schema in (*filter(run.request.means, saved.schemas), *(each.schema for each in meant.values())):
        tables.create_schema(schema)
    for old, table in meant.items():
        if old not in checkpoint.tables:
            checkpoint.tables[old] = tables.create_table(
                table.schema, table.name, table.columns, numbered=table.numbered
            )
            checkpoint.save(tables)
    return checkpoint


def _require_fresh(run: Run, tables: Tables, meant: dict[int, Table]) -> None:
    there = tables.tables()
    if run.request.words[-1] == "full" and not run.request.filters and there:
        why = f"cluster is not fresh, found {len(there)} user tables"
        raise Failed(f"[BR:Restore:ErrRestoreNotFreshCluster]{why}")
    names = {(table.schema, table.name) for table in there}
    if taken := [table for table in meant.values() if (table.schema, table.name) in names]:
        raise Failed(f"[BR:Restore:ErrTableAlreadyExisted]table {taken[0].schema}.{taken[0].name} already exists")


def _ingest(run: Run, checkpoint: _Checkpoint, file: File) -> None:
    """Write a file's keys into the region of the new table. Raises Failed, OSError."""
    run.work_on_a_region()
    content = run.files.read(file.name)
    if (len(content), meta.sha256(content)) != (file.size, file.sha256):
        raise Failed(f"[BR:Restore:ErrRestoreChecksumMismatch]{file.name} is not what backupmeta says")
    table = checkpoint.tables[file.table]
    run.leader(table.id)
    tables = run.cluster().tables
    version, skip = tables.now(), len(table.keys.start)
    for key, value in meta.unpack(content):
        tables.content.put(table.keys.start + key[skip:], value, version)
    checkpoint.done.append(file.name)
    checkpoint.save(tables)


def _left(tables: Tables) -> _Checkpoint | None:
    """The checkpoint of an unfinished run, or None."""
    value = tables.content.get(_CHECKPOINT)
    if value is None:
        return None
    told = json.loads(value)
    made = {
        int(old): Table(schema, name, id_, tuple(columns))
        for old, (schema, name, id_, columns) in told["tables"].items()
    }
    return _Checkpoint(told["cluster"], told["end"], made, told["done"])


def _forget(tables: Tables) -> None:
    tables.content.put(_CHECKPOINT, None, tables.now())
