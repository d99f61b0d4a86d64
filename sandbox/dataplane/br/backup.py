"""`br backup`: the tables of a cluster at one timestamp, region by region.

Progress is recorded in a checkpoint beside the files: a run after a killed one continues at its timestamp.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.dataplane.br import meta
from sandbox.dataplane.br.meta import File, Meta
from sandbox.dataplane.br.run import Failed, Run
from sandbox.dataplane.content import region_range
from sandbox.dataplane.tables import Table, Tables

_LOCK = "backup.lock"
_CHECKPOINT = "checkpoints/backup/checkpoint.meta"
_DATA = ".sst"


@dataclass(slots=True)
class _Checkpoint:
    """The timestamp of the backup, and the complete files by region."""

    version: int
    files: dict[int, File]

    def encode(self) -> bytes:
        files = {number: [each.name, each.sha256.hex(), each.size, each.table] for number, each in self.files.items()}
        return json.dumps({"backupts": self.version, "files": files}).encode()


def back_up(run: Run) -> None:
    """Run the backup. Raises Failed, OSError."""
    names = run.files.names()
    if meta.NAME in names:
        raise Failed("backup meta file exists in destination, there may be some backup files in the path already")
    checkpoint = _begin(run, names)
    tables = run.cluster().tables
    meant = [table for table in tables.tables(checkpoint.version) if run.request.means_table(table)]
    by_region = {table.id: table for table in meant}
    count = len(run.cluster().stores.regions)
    for region in range(count):
        if region not in checkpoint.files:
            _save(run, checkpoint, region, by_region.get(region))
        run.progress(region + 1, count)
    files = tuple(checkpoint.files[number] for number in sorted(checkpoint.files))
    schemas = tuple(each for each in tables.schemas(checkpoint.version) if run.request.means(each))
    done = Meta(run.cluster().id, checkpoint.version, schemas, tuple(meant), files)
    run.files.write(meta.NAME, done.encode())
    run.files.delete([_CHECKPOINT])
    run.note("INFO", f"{run.request.title} success", f"backup-total-ranges={count}", f"BackupTS={done.end}")


def _begin(run: Run, names: Sequence[str]) -> _Checkpoint:
    """Begin, or continue an earlier run. Raises Failed, OSError."""
    if _CHECKPOINT in names:
        return _read(run.files.read(_CHECKPOINT))
    if _LOCK in names and any(name.endswith(_DATA) for name in names):
        raise Failed("backup lock file and sst file exist in destination, please specify a correct one")
    run.files.write(_LOCK, b"DO NOT DELETE\nThis file exists to remind other backup jobs won't use this path")
    asked = run.request.option("backupts")
    found = _Checkpoint(int(asked) if asked else run.cluster().tables.now(), {})
    run.files.write(_CHECKPOINT, found.encode())
    return found


def _read(content: bytes) -> _Checkpoint:
    try:
        told = json.loads(content)
    except ValueError as error:
        raise Failed(f"the checkpoint cannot be read: {error}") from error
    files = {int(number): File(n, bytes.fromhex(h), s, t) for number, (n, h, s, t) in told["files"].items()}
    return _Checkpoint(told["backupts"], files)


def _save(run: Run, checkpoint: _Checkpoint, region: int, table: Table | None) -> None:
    run.work_on_a_region()
    leader = run.leader(region)
    if table is None:
        return
    content = meta.pack(_pairs(run.cluster().tables, run, region, checkpoint.version))
    digest = meta.sha256(content)
    file = File(f"{leader}/{region}_{digest.hex()[:16]}_write{_DATA}", digest, len(content), table.id)
    run.files.write(file.name, content)
    checkpoint.files[region] = file
    run.files.write(_CHECKPOINT, checkpoint.encode())


def _pairs(tables: Tables, run: Run, region: int, version: int) -> list[tuple[bytes, bytes]]:
    keys = region_range(region, len(run.cluster().stores.regions))
    return list(tables.content.scan(keys, version))
