"""A program in the place of BR, which takes BR's documented flags and none else. It imports nothing of this project.

A backup writes one table and its own arguments to local storage, and a restore reads the table from there. Below
`endless`, a backup works until SIGTERM.
"""

import base64
import json
import signal
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

META = bytes.fromhex("22070a0373737458052801308094f1d3880dc8010d")
"""A `backupmeta` with the file `sst` of five bytes: start, end and size of the backup."""
TABLE = "hello"

_SCOPES = ("full", "db", "table")
_COMMON = (
    "ca cert key pd storage log-level log-file log-format status-addr send-credentials-to-tikv filter case-sensitive "
    "ratelimit concurrency checksum check-requirements crypter.method crypter.key crypter.key-file s3.endpoint "
    "s3.region s3.storage-class s3.sse s3.sse-kms-key-id s3.acl s3.provider gcs.storage-class gcs.predefined-acl "
    "gcs.endpoint gcs.credentials-file azblob.endpoint azblob.account-name azblob.account-key azblob.access-tier"
)
_BACKUP = "db table timeago backupts lastbackupts gcttl compression compression-level ignore-stats use-checkpoint"
_RESTORE = "db table online no-schema with-sys-table granularity use-checkpoint load-stats"
_POINT = "start-ts restored-ts full-backup-storage with-sys-table use-checkpoint"
_FLAGS: Mapping[tuple[str, ...], str] = {
    **{("backup", scope): _BACKUP for scope in _SCOPES},
    **{("restore", scope): _RESTORE for scope in _SCOPES},
    ("restore", "point"): _POINT,
    ("operator", "base64ify"): "load-creds",
    ("log", "start"): "task-name start-ts",
    **{("log", verb): "task-name" for verb in ("stop", "pause", "resume")},
    ("log", "truncate"): "until dry-run yes",
}


def main(argv: Sequence[str]) -> int:
    """Carry out a command line; the exit code."""
    words, flags = tuple(argv[:2]), [word.removeprefix("--").partition("=") for word in argv[2:] if word[:2] == "--"]
    if words not in _FLAGS:
        return _fail(f'Error: unknown command "{" ".join(words)}" for "br"')
    known = {*_COMMON.split(), *_FLAGS[words].split()}
    if unknown := [name for name, _, _ in flags if name not in known]:
        return _fail(f"Error: unknown flag: --{unknown[0]}\nUsage:\n  br {' '.join(words)} [flags]")
    options = {name: value for name, _, value in flags}
    storage = Path(options["storage"].removeprefix("local://"))
    return _run(words, options, storage, argv)


def _run(words: Sequence[str], options: Mapping[str, str], storage: Path, argv: Sequence[str]) -> int:
    if words[0] == "operator":
        sys.stdout.write(base64.b64encode(options["storage"].encode()).decode() + "\n")
        return 0
    if words[0] == "restore":
        base = Path(options.get("full-backup-storage", f"local://{storage}").removeprefix("local://"))
        (storage / "restored").write_text(json.dumps([(base / "sst").read_text("utf-8"), *argv]), "utf-8")
        return 0
    storage.mkdir(parents=True, exist_ok=True)
    if storage.name == "endless":
        _work_until_terminated(storage)
    (storage / "sst").write_text(TABLE, "utf-8")
    (storage / "arguments").write_text(json.dumps(argv), "utf-8")
    (storage / "backupmeta").write_bytes(META)
    if words == ("log", "start"):
        _register(options["pd"], options["task-name"])
    return 0


def _work_until_terminated(storage: Path) -> None:
    def end(_number: int, _frame: FrameType | None) -> None:
        (storage / "ended").write_text("context canceled", "utf-8")
        sys.exit(1)

    signal.signal(signal.SIGTERM, end)
    sys.stderr.write('[INFO] [progress.go:1] [progress] [step="Full Backup"] [progress=25.00%]\n')
    signal.pause()


def _register(pd: str, task: str) -> None:
    """Write the task into PD's etcd, by the names of the pods' network."""
    texts = {f"/tidb/br-stream/info/{task}": task.encode()}
    texts[f"/tidb/br-stream/checkpoint/{task}/central_global"] = (450_000_000_000).to_bytes(8, "big")
    for key, value in texts.items():
        body = {"key": base64.b64encode(key.encode()).decode(), "value": base64.b64encode(value).decode()}
        url, headers = f"http://{pd}/v3/kv/put", {"Content-Type": "application/json"}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        urllib.request.urlopen(request, timeout=10).close()


def _fail(text: str) -> int:
    sys.stderr.write(f"{text}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
