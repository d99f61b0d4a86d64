"""The command as a process: API server over HTTP, storage in moto or a directory, and a test program as BR."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kube.objects import Json
from kube.resources import BACKUPS, RESTORES
from sandbox.apiserver.http_server import HttpServer
from tests.backup_manager.storage.conftest import Place, s3, s3_place, servers
from tests.backup_manager.storage.servers import CANARY, S3
from tests.backup_manager.worlds import NAME, NAMESPACE, World, meta_bytes

__all__ = ["s3", "s3_place", "servers"]

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

BR = f"""#!{sys.executable}
# Stands in for BR: notes what it is given, tells progress, saves what it is told to, and goes on where it was ended.
import json, os, signal, sys, time
from pathlib import Path

here = Path(__file__).parent
behaviour = json.loads((here / "behaviour.json").read_text())
with (here / "runs.jsonl").open("a") as runs:
    runs.write(json.dumps({{"argv": sys.argv, "environ": dict(os.environ), "pid": os.getpid()}}) + "\\n")

def put(name, content):
    url = next(word for word in sys.argv if word.startswith("--storage=")).partition("=")[2]
    scheme, _, path = url.partition("://")
    if scheme == "local":
        target = Path(path, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        return
    import boto3
    bucket, _, prefix = path.partition("/")
    endpoint = next(word for word in sys.argv if word.startswith("--s3.endpoint=")).partition("=")[2]
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").put_object(
        Bucket=bucket, Key=f"{{prefix}}/{{name}}", Body=content
    )

def ended(*_):
    print("[WARN] ended by SIGTERM", file=sys.stderr, flush=True)
    sys.exit(1)

signal.signal(signal.SIGTERM, ended)
step = "Full Restore" if "restore" in sys.argv else "Full Backup"
for percent in (0, 50):
    print(f'[progress] [step="{{step}}"] [progress={{percent}}.00%]', flush=True)
    if "backup" in sys.argv:
        put(f"{{percent}}.sst", b"x" * 100)
print("[ERROR] the key is " + os.environ.get("AWS_SECRET_ACCESS_KEY", "none"), flush=True)
if behaviour.get("hang"):
    (here / "hangs").touch()
    time.sleep(60)
if behaviour.get("code"):
    sys.exit(behaviour["code"])
print(f'[progress] [step="{{step}}"] [progress=100.00%]', flush=True)
if "backup" in sys.argv:
    put("sst", b"12345")
    put("backupmeta", bytes.fromhex(behaviour["meta"]))
"""

COMMAND = """
import sys
from backup_manager import br, main

br.BR = sys.argv.pop(1)
sys.exit(main.main())
"""


class Pod:
    """Runs the command against a world, with a BR."""

    def __init__(self, directory: Path, world: World, url: str) -> None:
        self.world = world
        self.directory = directory
        self._br = directory / "br"
        self._br.write_text(BR)
        self._br.chmod(0o755)
        self.behave()
        cluster = {"name": "x", "cluster": {"server": url}}
        context = {"name": "x", "context": {"cluster": "x", "user": "x"}}
        config = {"clusters": [cluster], "users": [{"name": "x", "user": {}}], "contexts": [context]}
        self._kubeconfig = directory / "kubeconfig"
        self._kubeconfig.write_text(yaml.safe_dump({**config, "current-context": "x"}))
        self.environ: dict[str, str] = {}

    def behave(self, **behaviour: object) -> None:
        usual = {"meta": meta_bytes().hex()}
        (self.directory / "behaviour.json").write_text(json.dumps(usual | behaviour))

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", COMMAND, str(self._br), *arguments, f"--kubeconfig={self._kubeconfig}"]
        environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **self.environ}
        return subprocess.Popen(
            command, env=environ, cwd=self.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *arguments: str) -> tuple[int, str]:
        """The exit code and the whole output."""
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=60)
        return process.returncode, out + err

    def runs(self) -> list[Json]:
        """BR's input, run by run."""
        return [json.loads(line) for line in (self.directory / "runs.jsonl").read_text().splitlines()]

    def wait_until_br_hangs(self) -> None:
        deadline = time.monotonic() + 30  # noqa: TID251  (a real process)
        while not (self.directory / "hangs").exists():
            assert time.monotonic() < deadline  # noqa: TID251
            time.sleep(0.02)  # noqa: TID251
        (self.directory / "hangs").unlink()


@pytest.fixture
def pod(tmp_path: Path, world: World) -> Iterator[Pod]:
    with contextlib.closing(_Serving(world)) as serving:
        yield Pod(tmp_path, world, serving.url)


class _Serving:
    def __init__(self, world: World) -> None:
        self._http = HttpServer(world.server)
        self._http.start()
        self.url = self._http.url

    def close(self) -> None:
        self._http.stop()


def on_volume(pod: Pod) -> Json:
    mount = pod.directory / "mount"
    mount.mkdir(exist_ok=True)
    volume = {"volume": {"name": "v"}, "volumeMount": {"name": "v", "mountPath": str(mount)}, "prefix": "some/prefix"}
    return {"s3": None, "local": volume}


BACKUP = ("backup", f"--namespace={NAMESPACE}", f"--backupName={NAME}", "--tikvVersion=v8.5.0", "--mode=snapshot")
RESTORE = ("restore", f"--namespace={NAMESPACE}", f"--restoreName={NAME}", "--tikvVersion=v8.5.0", "--mode=snapshot")
CLEAN = ("clean", f"--namespace={NAMESPACE}", f"--backupName={NAME}")


def test_backup_restore_and_clean_on_s3_show_no_credential(pod: Pod, s3: S3, s3_place: Place) -> None:
    pod.environ = dict(s3.environ)
    place = s3_place.location
    storage = {"provider": "ceph", "bucket": place.bucket, "prefix": place.prefix, "endpoint": place.endpoint}
    pod.world.backup(s3=storage)
    pod.world.restore(s3=storage)
    outputs = []
    for arguments in (BACKUP, RESTORE, CLEAN):
        code, output = pod.run(*arguments)
        assert 0 == code, output
        outputs.append(output)
        if arguments is BACKUP:
            stored = {each.key: each.size for page in s3_place.storage().pages() for each in page}
            assert {"0.sst": 100, "50.sst": 100, "sst": 5, "backupmeta": len(meta_bytes())} == stored
    assert [] == list(s3_place.storage().pages())
    assert ["Prepare", "Running", "Complete", "Verified", "Clean"] == pod.world.conditions(BACKUPS)
    assert ["Running", "Complete"] == pod.world.conditions(RESTORES)
    assert [("Full Restore", 100)] == [
        (each["step"], each["progress"]) for each in pod.world.status(RESTORES)["progresses"]
    ]
    backup, restore = pod.runs()
    assert ["backup", "full", "--pd=basic-pd.db:2379", f"--storage=s3://{place.path}"] == backup["argv"][1:5]
    assert ["restore", "full"] == restore["argv"][1:3]
    assert CANARY == backup["environ"]["AWS_SECRET_ACCESS_KEY"]
    seen = [*outputs, json.dumps(pod.world.read(BACKUPS)), json.dumps([backup["argv"], restore["argv"]])]
    assert [] == [text for text in seen if CANARY in text]
    assert "the key is [redacted]" in outputs[0]


def test_a_failure_shows_no_credential(pod: Pod) -> None:
    pod.environ = {"AWS_ACCESS_KEY_ID": "AKIA" + CANARY, "AWS_SECRET_ACCESS_KEY": CANARY}
    pod.behave(code=3)
    pod.world.backup(**on_volume(pod))
    code, output = pod.run(*BACKUP)
    status = pod.world.status(BACKUPS)
    assert 1 == code
    assert "BR ended with exit code 3: [ERROR] the key is [redacted]" in status["conditions"][-1]["message"]
    assert "BackupDataToRemoteFailed" in output
    assert CANARY not in output + json.dumps(pod.world.read(BACKUPS))


def test_sigterm_reaches_br_and_leaves_the_backup_to_another_pod(pod: Pod) -> None:
    pod.behave(hang=True)
    pod.world.backup(**on_volume(pod))
    process = pod.start(*BACKUP)
    pod.wait_until_br_hangs()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert 130 == process.returncode, out + err
    assert "ended by SIGTERM" in err
    assert "Running" == pod.world.status(BACKUPS)["phase"]
    pod.behave()
    assert 0 == pod.run(*BACKUP)[0]
    assert ["Prepare", "Running", "Restart", "Complete", "Verified"] == pod.world.conditions(BACKUPS)
    assert 2 == len(pod.runs())


def test_after_kill_9_there_is_exactly_one_backup(pod: Pod) -> None:
    pod.behave(hang=True)
    pod.world.backup(**on_volume(pod))
    process = pod.start(*BACKUP)
    pod.wait_until_br_hangs()
    process.kill()
    process.communicate()
    # a container would end with its first process; here BR survives, and is killed by its id
    os.kill(pod.runs()[0]["pid"], signal.SIGKILL)
    prefix = pod.directory / "mount" / "some" / "prefix"
    prefix.joinpath("backupmeta").write_bytes(meta_bytes())
    code, output = pod.run(*BACKUP)
    assert 0 == code, output
    assert "BR has finished this backup in an earlier pod" in output
    assert "Complete" == pod.world.status(BACKUPS)["phase"]
    assert 1 == len(pod.runs())


def test_reports_a_missing_api_server(pod: Pod) -> None:
    code, output = pod.run("clean", "--namespace=other", "--backupName=missing")
    assert 1 == code
    assert "backup-manager: cannot work for Backup other/missing: it does not exist" in output
