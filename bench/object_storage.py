"""Deletion of 100,000 objects on a volume, beside the library alone, and its memory (backup.md 7.8).

Each side is a separate process, so that its peak of memory is its own. `BENCH_OBJECTS` sets another number.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.figures import note, show

_OBJECTS = int(os.environ.get("BENCH_OBJECTS", "100000"))
_ROUNDS = 3

_OURS = """
def delete(root):
    from backup_manager.storage.deletion import Pace, delete_all
    from backup_manager.storage.location import Kind, Location
    from backup_manager.storage.objects import open_storage
    from ports.clock import SystemClock
    from ports.stopping import Stop

    storage = open_storage(Location(Kind.LOCAL, root, "backup"), {})
    return delete_all(storage, Pace(), SystemClock(), Stop(), lambda done: None).objects
"""

_LIBRARY = """
def delete(root):
    import obstore
    from obstore.store import LocalStore

    store = LocalStore(root, automatic_cleanup=True)
    gone = 0
    for page in obstore.list(store, prefix="backup", chunk_size=10_000):
        obstore.delete(store, [each["path"] for each in page])
        gone += len(page)
    return gone
"""

_MEASURE = """
import json, sys, time
started = time.perf_counter()
gone = delete(sys.argv[1])
seconds = time.perf_counter() - started
# getrusage would tell the peak of the process that forked this one
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
print(json.dumps({"gone": gone, "seconds": seconds, "peak": peak}))
"""


def main() -> int:
    """Measure both alternately, and this operator with a third of the objects; 1 if objects were left."""
    sides: dict[str, list[dict[str, float]]] = {"ours": [], "library": []}
    for number in range(_ROUNDS):
        note(f"object storage: round {number + 1} of {_ROUNDS}")
        sides["ours"].append(_measured(_OURS, _OBJECTS))
        sides["library"].append(_measured(_LIBRARY, _OBJECTS))
    few = _measured(_OURS, _OBJECTS // 3)
    ours, library = (median(each["seconds"] for each in sides[side]) for side in ("ours", "library"))
    peak = max(each["peak"] for each in sides["ours"])
    source = "obstore alone: list and delete, page by page"
    show(f"delete {_OBJECTS} objects", ours, round(library, 3), "s", source)
    show(f"peak memory of it, {_OBJECTS} objects", peak, round(few["peak"], 3), "MiB", "with a third of the objects")
    return int(any(each["gone"] != _OBJECTS for each in (*sides["ours"], *sides["library"])))


def _measured(delete: str, count: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        for number in range(count):
            directory = Path(name, "backup", str(number % 100))
            if number < 100:
                directory.mkdir(parents=True)
            (directory / f"{number}.sst").touch()
        command = [sys.executable, "-c", delete + _MEASURE, name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    figures: dict[str, float] = json.loads(done.stdout)
    return figures
