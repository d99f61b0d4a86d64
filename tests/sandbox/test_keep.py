"""A sandbox that continues with the objects and volumes of an earlier one."""

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from cli import main
from cli.sandbox import simulated_volumes
from kube.objects import Json
from kube.resources import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS
from ports.clock import FakeClock, SystemClock
from ports.randomness import SeededRandomness, SystemRandomness
from rehearsal.world import new_world
from sandbox.apiserver.server import ApiServer
from sandbox.processes.agent_client import Unavailable
from sandbox.processes.keep import Keep
from sandbox.world import World
from tests.e2e.waiting import eventually
from tests.sandbox.real_pods import (
    AS_ROOT_AND_WITHOUT,
    LIVES,
    NAMESPACE,
    binaries,
    holds,
    machine_or_skip,
    pod,
    processes,
    read,
    run,
    running,
    said,
)

__all__ = ["binaries"]

_CLAIM = "data"


def counting(marker: str) -> Json:
    """A pod that prints its starts, which it counts on a volume."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": _CLAIM}}
    more = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    script = f"echo start >>/data/starts; cat /data/starts; echo known; {LIVES} # kept-{marker}"
    return pod("counts", script, container=more, volumes=[volume])


def claim(world: World) -> None:
    spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec["storageClassName"] = "standard"
    meta = {"name": _CLAIM, "namespace": NAMESPACE}
    tree = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
    world.client().create(PERSISTENT_VOLUME_CLAIMS, tree, NAMESPACE)


@pytest.mark.slow
@AS_ROOT_AND_WITHOUT
def test_after_kill_9_a_sandbox_continues_with_the_objects_and_volumes(
    binaries: Path, tmp_path: Path, as_root: bool
) -> None:
    if as_root and os.geteuid():
        pytest.skip("needs root; the same runs in a user namespace")
    keep = tmp_path / "keep"
    script = (
        "from pathlib import Path\n"
        "import sys\n"
        "from tests.sandbox.real_pods import run, running\n"
        "from tests.sandbox.test_keep import claim, counting\n"
        "with running(Path(sys.argv[1]), as_root=sys.argv[2] == 'True', keep=Path(sys.argv[3])) as world:\n"
        "    claim(world)\n"
        "    run(world, counting('killed'))\n"
        "    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(binaries), str(as_root), str(keep)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as sandbox:
        try:
            holds(lambda: bool(list(keep.glob("volumes/*/starts"))), lambda: "it has not started")
            with pytest.raises(Unavailable, match=r"keep is in use by another sandbox; end that one"):
                Keep(keep)
        finally:
            sandbox.send_signal(signal.SIGKILL)
            sandbox.wait()
    # the lock outlives the sandbox by the time that its processes need to end
    eventually(lambda: _is_free(keep))
    assert not processes("kept-killed")
    with running(binaries, as_root=as_root, keep=keep) as world:
        uid = read(world, "counts")["metadata"]["uid"]
        said(world, uid, "start\nstart\nknown")


def _is_free(directory: Path) -> bool:
    try:
        Keep(directory).close()
    except Unavailable:
        return False
    return True


@pytest.mark.slow
def test_pods_with_a_claim_and_only_simulated_servers_are_named(binaries: Path) -> None:
    machine = machine_or_skip(binaries, as_root=False)
    world = new_world(SystemClock(), SystemRandomness(), machine=machine)
    try:
        claim(world)
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": _CLAIM}}
        for name, volumes in (("grafana", [volume]), ("stateless", [])):
            run(world, pod(name, "", container={"image": "grafana", "command": ["grafana"]}, volumes=volumes))
        run(world, counting("real"))
        assert ["default/grafana"] == simulated_volumes(world.client(), machine)
    finally:
        world.stop()


def server(keep: Keep) -> ApiServer:
    made = ApiServer(FakeClock(), SeededRandomness(1))
    made.resume(keep)
    return made


def names(keep: Path) -> list[str]:
    """The names of the ConfigMaps that another sandbox finds."""
    opened = Keep(keep)
    try:
        return [stored.name for stored in server(opened).storage.objects(CONFIG_MAPS.plural)]
    finally:
        opened.close()


def write(server: ApiServer, name: str) -> None:
    server.load(CONFIG_MAPS, {"metadata": {"name": name, "namespace": NAMESPACE}, "data": {"text": "x" * 2000}})


def test_creations_deletions_and_a_restored_state_are_kept_with_their_version(tmp_path: Path) -> None:
    keep = Keep(tmp_path)
    first = server(keep)
    for name in ("a", "b"):
        write(first, name)
    before = first.snapshot()
    write(first, "c")
    first.storage.remove(CONFIG_MAPS.plural, first.storage.objects(CONFIG_MAPS.plural)[0])
    last = first.storage.version
    keep.close()
    assert ["b", "c"] == names(tmp_path)
    again = Keep(tmp_path)
    second = server(again)
    # no version is given twice
    assert second.storage.version > last
    second.restore(before)
    again.close()
    assert ["a", "b"] == names(tmp_path)


def test_while_the_directory_is_full_the_server_continues_and_later_keeps_all(tmp_path: Path) -> None:
    keep = Keep(tmp_path)
    full = server(keep)
    keep._database.execute("PRAGMA max_page_count = 1")
    for number in range(9):
        write(full, f"meanwhile-{number}")
    assert 9 == len(full.storage.objects(CONFIG_MAPS.plural))
    keep._database.execute("PRAGMA max_page_count = 100000")
    write(full, "after")
    keep.close()
    assert ["after", *(f"meanwhile-{number}" for number in range(9))] == names(tmp_path)


def test_a_directory_that_it_cannot_continue_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.txt").touch()
    with pytest.raises(Unavailable, match=r"has files, but none of a sandbox; name an empty directory"):
        Keep(tmp_path / "notes")
    assert ["todo.txt"] == [path.name for path in (tmp_path / "notes").iterdir()]
    with sqlite3.connect(_made(tmp_path / "newer")) as database:
        database.execute("PRAGMA user_version = 2")
    database.close()
    with pytest.raises(Unavailable, match=r"another version of tidb-operator wrote .*newer: its format is 2, this"):
        Keep(tmp_path / "newer")
    _made(tmp_path / "broken").write_bytes(b"no database, but a text that is long enough to be read as one" * 9)
    with pytest.raises(Unavailable, match=r"can't read .*broken/objects.db: file is not a database; restore it"):
        Keep(tmp_path / "broken")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    with sqlite3.connect(foreign / "objects.db") as database:
        database.execute("CREATE TABLE songs (title)")
    database.close()
    with pytest.raises(Unavailable, match=r"foreign/objects.db is no sandbox's"):
        Keep(foreign)


def _made(directory: Path) -> Path:
    Keep(directory).close()
    return directory / "objects.db"


def test_a_simulated_sandbox_keeps_nothing_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main.main(["sandbox", "--keep", str(tmp_path / "keep")])
    assert "--keep needs --binaries: simulated servers keep nothing" in capsys.readouterr().err
    assert not (tmp_path / "keep").exists()
