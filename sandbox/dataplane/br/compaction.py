"""`tikv-ctl compact-log-backup`: rewrites a part of a log backup for faster restores, whole or one of its shards.

Each run leaves `v1/compactions/<shard>-of-<shards>.json` with the names of its files. `br operator base64ify` hands the
storage over.
"""

import base64
import json
from collections.abc import Mapping, Sequence

from sandbox.dataplane.br.request import parse
from sandbox.dataplane.br.run import Files, Open, Say
from sandbox.dataplane.commands import Surroundings
from sandbox.dataplane.log_streams import CHECKPOINT, end_of

BASE64IFY = ("operator", "base64ify")


def base64ified(arguments: Sequence[str]) -> str:
    """The storage in the options of `br operator base64ify`, as one word."""
    return base64.b64encode(json.dumps(list(arguments[len(BASE64IFY) :])).encode()).decode()


def result_of(shard: int, shards: int) -> str:
    """The name of the file that a run leaves, with shards from 1."""
    return f"v1/compactions/{shard}-of-{shards}.json"


def run_compaction(arguments: Sequence[str], surroundings: Surroundings, open_files: Open, say: Say) -> int:
    """Run a command line and return the exit code; `say` prints to stderr."""
    options = _options(arguments)
    try:
        return _compact(options, _files(options, open_files), surroundings, say)
    except OSError as error:
        say(json.dumps({"level": "ERROR", "message": "compaction failed", "err": str(error)}))
        return 1


def _compact(options: Mapping[str, str], files: Files, surroundings: Surroundings, say: Say) -> int:
    """Raises OSError."""
    shard, _, shards = options.get("shard", "1/1").partition("/")
    until = int(options.get("until") or files.read(CHECKPOINT))
    names = [name for name in sorted(files.names()) if int(options["from"]) <= (end_of(name) or 0) <= until]
    own = names[int(shard) - 1 :: int(shards)]
    say(json.dumps({"level": "INFO", "message": "Spawning compaction.", "input_max_ts": until}))
    for number, name in enumerate(own, 1):
        if surroundings.stop.wait(surroundings.clock, surroundings.deps.timings.br_region):
            return 1
        done = {"meta_completed": number, "meta_total": len(own), "bytes_compacted": len(files.read(name))}
        say(json.dumps({"level": "INFO", "message": "Finishing compaction."} | done))
    files.write(result_of(int(shard), int(shards)), json.dumps(own).encode())
    return 0


def _files(options: Mapping[str, str], open_files: Open) -> Files:
    """The storage of the log. Raises OSError."""
    return open_files(parse([*BASE64IFY, *json.loads(base64.b64decode(options["storage-base64"]))]))


def _options(arguments: Sequence[str]) -> Mapping[str, str]:
    """The options by name; one without a value has the next option as its value, which is not read."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    return {name.lstrip("-"): value for name, value in pairs if name.startswith("-")}
