"""The pages about threads: what they show, that they are on loopback only, and that one profile is taken at a time."""

import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from controller_manager.debugging import DebugServer, loopback_address
from controller_manager.flags import parse
from controller_manager.health import ListenError
from ports.clock import SystemClock
from ports.transport import Request

ROOT = Path(__file__).resolve().parents[2]
_SECOND = Request("GET", "/debug/profile?seconds=1")


@pytest.fixture
def server() -> Iterator[DebugServer]:
    found = DebugServer("127.0.0.1:0", SystemClock())
    yield found
    found.stop()


@pytest.fixture
def sleeper() -> Iterator[None]:
    """A thread named `sleeper` that waits in `_sleeps`."""
    event = threading.Event()

    def _sleeps() -> None:
        event.wait()

    thread = threading.Thread(target=_sleeps, name="sleeper")
    thread.start()
    yield
    event.set()
    thread.join()


@pytest.mark.usefixtures("sleeper")
def test_threads_are_listed_by_name_with_their_stacks(server: DebugServer) -> None:
    server.start()
    with urllib3.PoolManager(retries=False, timeout=5.0) as pool:
        page = pool.request("GET", f"http://127.0.0.1:{server.port}/debug/threads").data.decode()
    before, _, after = page.partition("Thread sleeper:")
    assert "Thread MainThread:" in before
    assert ", in _sleeps\n    event.wait()" in after
    assert "Thread debug-request:" in before


@pytest.mark.slow
@pytest.mark.usefixtures("sleeper")
def test_a_profile_counts_stacks_in_the_format_of_flame_graphs(server: DebugServer) -> None:
    lines = server.handle(_SECOND).body.decode().splitlines()
    (line,) = (each for each in lines if each.startswith("sleeper;"))
    stack, _, count = line.rpartition(" ")
    assert "threading.Thread.run;tests.controller_manager.test_debugging.sleeper.<locals>._sleeps;" in stack
    assert 1 <= int(count) <= 100
    assert not any(each.startswith("MainThread;") for each in lines), "the thread that takes the profile is in it"
    counts = [int(each.rpartition(" ")[2]) for each in lines]
    assert sorted(counts, reverse=True) == counts


@pytest.mark.slow
def test_one_profile_is_taken_at_a_time_and_a_stop_ends_it() -> None:
    server = DebugServer("127.0.0.1:0", SystemClock())
    answers: list[int] = []
    request = Request("GET", "/debug/profile?seconds=60")
    thread = threading.Thread(target=lambda: answers.append(server.handle(request).status))
    thread.start()
    while server.handle(_SECOND).status != 429:
        pass
    server.stop()
    thread.join(10.0)
    assert [200] == answers


@pytest.mark.slow
@pytest.mark.usefixtures("sleeper")
def test_the_commands_of_the_guide_show_stacks_and_a_profile(server: DebugServer) -> None:
    """The port-forward needs a pod; its port is the port of the flag and of the commands."""
    guide = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    (port,) = re.findall(r"`-debug-addr=127\.0\.0\.1:(\d+)`", guide)
    assert [port] == re.findall(r"`kubectl port-forward -n tidb-admin POD (\d+)`", guide)
    server.start()
    at_server = f"localhost:{port}", f"127.0.0.1:{server.port}"
    commands = [each.replace(*at_server) for each in re.findall(r"`(curl [^`]+)`", guide)]
    threads, profile = (_output(each.replace("seconds=10", "seconds=1")) for each in commands)
    assert "Thread sleeper:" in threads
    assert re.search(r"^sleeper;\S+ \d+$", profile, re.MULTILINE)


def _output(command: str) -> str:
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=30, check=True).stdout


@pytest.mark.parametrize(
    ("url", "method", "status"),
    [
        ("/debug/profile?seconds=0", "GET", 400),
        ("/debug/profile?seconds=61", "GET", 400),
        ("/debug/profile?seconds=x", "GET", 400),
        ("/debug/profile?seconds=-1", "GET", 400),
        ("/debug/pprof/", "GET", 404),
        ("/debug/threads", "POST", 405),
    ],
)
def test_anything_else_is_refused(server: DebugServer, url: str, method: str, status: int) -> None:
    assert status == server.handle(Request(method, url)).status


@pytest.mark.parametrize("address", [":6061", "0.0.0.0:6061", "10.0.0.1:6061", "[::]:6061", "example.com:1"])
def test_only_addresses_on_loopback_are_accepted(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([f"-debug-addr={address}"], {}, "1")
    assert "is not on loopback" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["127.0.0.1:6061", "[::1]:0", "localhost:6061"])
def test_loopback_has_several_names(address: str) -> None:
    assert address == loopback_address(address) == parse([f"-debug-addr={address}"], {}, "1").debug_addr


def test_a_taken_port_names_the_flag(server: DebugServer) -> None:
    server.start()
    with pytest.raises(ListenError, match="--debug-addr"):
        DebugServer(f"127.0.0.1:{server.port}", SystemClock()).start()
