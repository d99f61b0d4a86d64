"""What can go wrong with real processes: ports, disks, tools, the machine, and an end of the sandbox."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import pytest

from cli.failures import Failure
from cli.sandbox import machine_for
from cli.tidb.connection import Kubeconfig
from kube.errors import NotFound
from kube.resources import PODS
from ports.clock import SystemClock
from sandbox.processes.agent_client import Unavailable
from sandbox.processes.machine import Machine
from sandbox.world import World
from tests.sandbox.real_pods import (
    AS_ROOT_AND_WITHOUT,
    LIVES,
    NAMESPACE,
    SERVES,
    answered,
    binaries,
    built,
    container,
    holds,
    leaves,
    output,
    pod,
    processes,
    program,
    read,
    run,
    running,
    said,
    world,
)

pytestmark = pytest.mark.slow

__all__ = ["binaries", "world"]


def test_two_sandboxes_use_the_same_addresses_at_once(world: World, binaries: Path) -> None:
    with running(binaries, as_root=False) as other:
        for each, text in ((world, "one"), (other, "two")):
            run(each, pod("both", f"cd /tmp; echo {text} >page; {SERVES}"))
        assert answered(world, "http://both.both.default:8000/page").body == b"one\n"
        assert answered(other, "http://both.both.default:8000/page").body == b"two\n"


def test_an_end_shows_its_code_and_last_lines_and_the_container_restarts(world: World) -> None:
    uid = run(world, pod("ends", "echo first; echo no such region >&2; exit 3"))
    holds(lambda: container(world, "ends").get("restartCount", 0) >= 2, lambda: container(world, "ends"))
    end = container(world, "ends")["lastState"]["terminated"]
    assert (3, "Error", "first\nno such region") == (end["exitCode"], end["reason"], end["message"])
    assert "no such region" in output(world, uid, previous=True)


@AS_ROOT_AND_WITHOUT
def test_a_port_in_use_is_the_containers_last_message_and_delays_its_restart(binaries: Path, as_root: bool) -> None:
    with running(binaries, as_root=as_root) as world:
        tree = pod("twice", f"cd /tmp; {SERVES}")
        second = tree["spec"]["containers"][0] | {"name": "second", "command": ["/tool", f"sleep 1; {SERVES}"]}
        uid = run(world, tree | {"spec": tree["spec"] | {"containers": [second, *tree["spec"]["containers"]]}})
        holds(
            lambda: "CrashLoopBackOff" in str(container(world, "twice").get("state")), lambda: container(world, "twice")
        )
        status = container(world, "twice")
        end, waits = status["lastState"]["terminated"], status["state"]["waiting"]
        assert (1, "Error") == (end["exitCode"], end["reason"])
        assert "Address already in use" in end["message"].splitlines()[-1]
        assert f"restarting failed container=second pod=twice_default({uid})" in waits["message"]
        described = _described(world, "twice")
        assert "Address already in use" in described
        assert "Back-off restarting failed container second" in described
        # the pod's other container has the port
        assert 200 == answered(world, "http://twice.twice.default:8000/").status


@AS_ROOT_AND_WITHOUT
def test_a_full_volume_ends_only_the_program_that_writes_to_it(binaries: Path, as_root: bool) -> None:
    volume = {"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "300Ki"}}
    more = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    writes = "echo start >>/data/starts; dd if=/dev/zero of=/data/table bs=64k count=9"
    with running(binaries, as_root=as_root) as world:
        run(world, pod("beside", f"cd /tmp; {SERVES}"))
        uid = run(world, pod("full", f"{writes} || exit 4; {LIVES}", container=more, volumes=[volume]))
        holds(lambda: container(world, "full").get("restartCount", 0) >= 1, lambda: container(world, "full"))
        end = container(world, "full")["lastState"]["terminated"]
        assert 4 == end["exitCode"]
        assert "No space left on device" in end["message"]
        assert 200 == answered(world, "http://beside.beside.default:8000/").status
        # another pod's volume of the same limit is empty
        frees = "rm -f /data/table; echo start >>/data/starts; cat /data/starts; echo freed; "
        other = run(world, pod("other", f"{frees}{LIVES}", container=more, volumes=[volume]))
        assert "start\nfreed" == said(world, other, "freed").strip()
        world.client().delete(PODS, "full", NAMESPACE)
        with suppress(NotFound):
            holds(lambda: read(world, "full")["metadata"]["uid"] != uid, lambda: "still there")


@AS_ROOT_AND_WITHOUT
def test_a_tool_that_a_script_lacks_ends_its_container_with_127_and_the_name(binaries: Path, as_root: bool) -> None:
    with running(binaries, as_root=as_root) as world:
        run(world, pod("lacks", "set -e; pd-recover-all --now; echo never"))
        holds(lambda: bool(container(world, "lacks").get("lastState")), lambda: container(world, "lacks"))
        end = container(world, "lacks")["lastState"]["terminated"]
    assert 127 == end["exitCode"]
    assert "pd-recover-all: not found" in end["message"]


def test_a_start_script_without_its_tool_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "pd-server", LIVES)
    with running(tmp_path, as_root=False) as world:
        monkeypatch.setenv("PATH", "/nowhere")
        more = {"image": "pingcap/pd:v8.5.0", "command": ["/bin/sh", "-c", "if nslookup a; then exec /pd-server; fi\n"]}
        run(world, pod("toolless", "", container=more))
        holds(lambda: bool(container(world, "toolless").get("lastState")), lambda: container(world, "toolless"))
        end = container(world, "toolless")["lastState"]["terminated"]
        message, code = end["message"], end["exitCode"]
    assert "the start script calls nslookup, which this machine lacks; install bind9-dnsutils" in message
    assert 127 == code


def test_a_machine_without_the_tools_is_refused_with_their_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "tool", LIVES)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "ip" else f"/bin/{name}")
    with pytest.raises(Unavailable, match=r"^ip not found; install iproute2"):
        Machine(tmp_path, SystemClock())


def test_a_machine_without_namespaces_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools, states = tmp_path / "tools", tmp_path / "states"
    for each in (tools, states):
        each.mkdir()
    program(tools, "unshare", "echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1")
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    monkeypatch.setattr(tempfile, "tempdir", str(states))
    with pytest.raises(Unavailable, match=r"unshare failed: Operation not permitted\. Run as root, or allow user"):
        Machine(tools, SystemClock())
    assert not list(states.iterdir())


def test_a_directory_without_programs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"contains no program, e.g. pd-server"):
        Machine(tmp_path, SystemClock())


def test_a_command_says_which_servers_a_cluster_would_lack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = (["pd-server", "tidb-server"], "lacks tikv-server,"), (["tikv-server"], "lacks br,"), (["br"], "")
    for names, lacked in steps:
        for each in names:
            program(tmp_path, each, LIVES)
        try:
            machine = machine_for(tmp_path, SystemClock())
        except Failure as error:
            pytest.skip(str(error))
        assert machine is not None
        machine.close()
        printed = capsys.readouterr().err
        assert lacked in printed if lacked else not printed


@AS_ROOT_AND_WITHOUT
def test_nothing_is_left_after_kill_9_of_the_sandbox(binaries: Path, tmp_path: Path, as_root: bool) -> None:
    if as_root and os.geteuid():
        pytest.skip("needs root; the same runs in a user namespace")
    script = (
        "from pathlib import Path\n"
        "import sys\n"
        "from tests.sandbox.real_pods import leaves, run, running\n"
        "with running(Path(sys.argv[1]), as_root=sys.argv[2] == 'True') as world:\n"
        "    run(world, leaves('kill-9'))\n"
        "    sys.stdin.read()\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", script, str(binaries), str(as_root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as sandbox:
        try:
            holds(lambda: bool(processes("behind-kill-9")), lambda: "it has not started")
            assert list(tmp_path.iterdir())
        finally:
            sandbox.send_signal(signal.SIGKILL)
            sandbox.wait()
    _leaves_nothing("behind-kill-9", tmp_path)


def test_nothing_is_left_after_ctrl_c_in_the_terminal_of_the_command(binaries: Path, tmp_path: Path) -> None:
    states, own = tmp_path / "states", tmp_path / "own"
    states.mkdir()
    environment = {**os.environ, "TMPDIR": str(states)}
    command = [sys.executable, "-m", "cli", "sandbox", "--binaries", str(binaries), "--dir", str(own)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, process_group=0) as sandbox:
        try:
            holds((own / "env").exists, lambda: "it has not started")
            with closing(Kubeconfig(str(own / "kubeconfig"), "", {}, SystemClock())) as server:
                server.client.create(PODS, leaves("ctrl-c"), NAMESPACE)
            holds(lambda: bool(processes("behind-ctrl-c")), lambda: "it has not started")
            # a terminal sends the signal to all processes of its foreground
            os.killpg(sandbox.pid, signal.SIGINT)
            assert 0 == sandbox.wait(30)
        finally:
            sandbox.kill()
    _leaves_nothing("behind-ctrl-c", states)


def _leaves_nothing(marker: str, states: Path) -> None:
    holds(lambda: not processes(marker), lambda: processes(marker))
    holds(lambda: not list(states.iterdir()), lambda: list(states.iterdir()))
    assert str(states) not in Path("/proc/mounts").read_text(encoding="utf-8")


def _described(world: World, name: str) -> str:
    kubectl = built("kubectl")
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = world.write_kubeconfig(Path(directory))
        command = [str(kubectl), f"--kubeconfig={kubeconfig}", "describe", "pod", name, "-n", NAMESPACE]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
