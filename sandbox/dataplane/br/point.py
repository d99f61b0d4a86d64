"""`br restore point`: restores a snapshot, then replays the log up to a moment.

Tables get new ids, so the replay uses the log's own records of schemas and tables.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sandbox.dataplane.br import meta
from sandbox.dataplane.br.meta import Meta
from sandbox.dataplane.br.restore import abort, read, restore
from sandbox.dataplane.br.run import Failed, Run
from sandbox.dataplane.content import META, meta_key, table_prefix
from sandbox.dataplane.log_streams import CHECKPOINT, Change, end_of, unpacked
from sandbox.dataplane.tables import Table, Tables

_NOTE = b"a/__TiDB_BR_Point_In_Time_Restore"
_SNAPSHOT_ALONE, _LOG_ALONE = "1", "2"
"""The steps of a replication restore."""
_TABLE_KEY = len(table_prefix(0))


def restore_point(run: Run) -> None:
    """Run the restore. Raises Failed, OSError."""
    base, until = _base(run), _until(run)
    saved = read(base)
    begins = _log_start(run)
    if not begins <= saved.end <= until:
        why = f"log begins at {begins}, snapshot is of {saved.end}, restored ts is {until}"
        raise Failed(f"[BR:PiTR:ErrPiTRInvalidTS]{why}")
    tables, step = run.cluster().tables, run.request.option("restore-phase")
    if step == _LOG_ALONE and tables.content.get(_NOTE) is None:
        raise Failed("the snapshot has not been restored by phase 1")
    if step != _LOG_ALONE:
        restore(base)
        tables.content.put(_NOTE, b"", tables.now())
    if step == _SNAPSHOT_ALONE:
        run.note("INFO", "restore snapshot success")
        return
    replay = _Replay(tables, _restored(tables, saved))
    names = sorted(name for name in run.files.names() if (end_of(name) or 0) > saved.end)
    for number, name in enumerate(names, 1):
        run.work_on_a_region()
        for change in unpacked(run.files.read(name)):
            if saved.end < change.version <= until:
                replay.apply(change)
        run.progress(number, len(names))
    tables.content.put(_NOTE, None, tables.now())
    run.note("INFO", "restore log success", f"restore-to={until}", f"log-files={len(names)}")


def abort_point(run: Run) -> None:
    """Undo a restore that did not finish; the cluster had no tables before. Raises Failed."""
    tables = run.cluster().tables
    if tables.content.get(_NOTE) is None:
        abort(run)
        return
    for table in tables.tables():
        tables.drop_table(table)
        run.work_on_a_region()
    for schema in tables.schemas():
        tables.content.put(meta_key(schema), None, tables.now())
    tables.content.put(_NOTE, None, tables.now())
    run.note("INFO", "abort restore success")


def _base(run: Run) -> Run:
    """The restore of the snapshot."""
    storage = run.request.option("full-backup-storage")
    if not storage:
        raise Failed("BR of the sandbox needs --full-backup-storage: it knows no tables from before the log")
    options = {**run.request.options, "storage": storage}
    request = replace(run.request, words=("restore", "full"), options=options)
    return Run(request, run.open_files(request), run.surroundings, run.say, run.open_files)


def _until(run: Run) -> int:
    """The requested moment, by default the end of the log. Raises Failed, OSError."""
    if meta.NAME not in run.files.names():
        raise Failed("[BR:Common:ErrInvalidMetaFile]backupmeta of the log backup not found")
    last = int(run.files.read(CHECKPOINT))
    asked = run.moment("restored-ts") or last
    if asked > last:
        raise Failed(f"[BR:PiTR:ErrPiTRInvalidTS]the log is complete up to {last} only, and {asked} is later")
    return asked


def _log_start(run: Run) -> int:
    return meta.start_version(run.files.read(meta.NAME))


def _restored(tables: Tables, saved: Meta) -> dict[int, Table]:
    """The restored tables of the snapshot, by their old ids."""
    now = {(table.schema, table.name): table for table in tables.tables()}
    return {old.id: now[old.schema, old.name] for old in saved.tables}


@dataclass(slots=True)
class _Replay:
    """Applies changes; `made` are the existing tables, by their old ids."""

    tables: Tables
    made: dict[int, Table] = field(default_factory=dict)

    def apply(self, change: Change) -> None:
        if change.key in META:
            self._meta(change)
        elif (old := _table_of(change.key)) in self.made:
            key = self.made[old].keys.start + change.key[_TABLE_KEY:]
            self.tables.content.put(key, change.value, self.tables.now())

    def _meta(self, change: Change) -> None:
        schema, _, table = change.key[1:].decode().partition("/")
        if table:
            self._table(schema, table, change.value)
        else:
            self._schema(schema, change.value)

    def _schema(self, name: str, value: bytes | None) -> None:
        if value is None:
            self.tables.content.put(meta_key(name), None, self.tables.now())
        else:
            self.tables.create_schema(name)

    def _table(self, schema: str, name: str, value: bytes | None) -> None:
        if value is not None:
            told = json.loads(value)
            self.made[told["id"]] = self.tables.create_table(schema, name, told["columns"], numbered=told["numbered"])
            return
        for table in self._named(schema, name):
            self.tables.drop_table(table)

    def _named(self, schema: str, name: str) -> Iterator[Table]:
        return (table for table in self.tables.tables() if (table.schema, table.name) == (schema, name))


def _table_of(key: bytes) -> int | None:
    """The id of a row's table; None for a key that is not a row."""
    return int.from_bytes(key[1:_TABLE_KEY], "big") if key.startswith(b"t") else None
