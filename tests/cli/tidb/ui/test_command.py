"""The command `ui`: it starts, prints the address, ends, and says what is missing."""

import ast
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.routing import Route

from cli.failures import Failure
from cli.tidb.main import main
from cli.tidb.output import Output
from cli.tidb.session import Session
from cli.tidb.ui.application import application
from cli.tidb.ui.rehearsals import Rehearsals
from library.build import imports_of
from ports.stopping import Stop
from release.plugin import modules_of_plugin
from tests.cli.tidb.typing_commands import Terminal, ThisServer
from tests.cli.tidb.ui.pages import Browser
from tests.e2e.operators import ROOT, clean_environment
from tests.operator_world import OperatorWorld

GUIDE = ROOT / "docs" / "ui.md"
EXTRA = ("starlette", "jinja2", "uvicorn")


def _without_token(text: str) -> str:
    return re.sub(r":\d+/\?token=\S+", ":PORT/?token=TOKEN", text)


def test_says_what_the_page_may_do(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stop, "wait", lambda *_: True)
    for flags, may in (([], "The page changes nothing."), (["--write"], "The page can change clusters.")):
        assert may in terminal.type("ui", *flags)


@pytest.mark.slow
def test_serves_at_the_printed_address_until_it_is_interrupted(kubeconfig: Path) -> None:
    command = [sys.executable, "-m", "cli.tidb", "ui", "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(
        command, cwd=ROOT, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    with process.stdout as printed:
        address, sentence = (printed.readline().decode().strip() for _ in range(2))
        assert _without_token(f"{address}\n{sentence}\n") in _without_token(GUIDE.read_text(encoding="utf-8"))
        browser = Browser(address)
        assert "There is no cluster that you may read." in browser.page().text
        process.send_signal(signal.SIGINT)
        assert (0, False) == (process.wait(30), b"Traceback" in printed.read())


def test_the_guide_lists_every_page(running: OperatorWorld) -> None:
    given = {"{short}": "tc", "{namespace}": "NAMESPACE", "{name}": "NAME"}
    session = Session(ThisServer(running.admin), running.clock, Output())
    routes = application(session, Rehearsals([])).routes
    pages = [each for each in routes if isinstance(each, Route) and "GET" in (each.methods or ())]
    paths = [each.path for each in pages if each.path != "/reasons/{name}"]
    listed = re.findall(r"^\| `(/.*?)` \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == [re.sub(r"\{\w+\}", lambda found: given[found[0]], each) for each in paths]


def test_says_that_the_port_is_taken(terminal: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Failure, match=rf"cannot listen on 127.0.0.1:{port}: .*; name another --port"):
            terminal.type("ui", "--port", str(port))


@pytest.mark.parametrize("port", ["-1", "65536", "x", "²"])
def test_refuses_what_is_no_port(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["ui", f"--port={port}"], {})
    assert "is no port; write a number from 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("missing", EXTRA)
def test_says_which_requirement_is_missing(missing: str, terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith(("cli.tidb.ui.", f"{missing}."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(Failure, match=rf"{missing} is missing; .* pip install 'tidb-operator-py\[ui\]'"):
        terminal.type("ui")


def test_the_single_file_of_the_plugin_says_that_it_has_no_page(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"__init__.py", "command.py"} == {each.name for each in modules_of_plugin() if each.parent.name == "ui"}
    monkeypatch.setitem(sys.modules, "cli.tidb.ui.server", None)
    with pytest.raises(Failure, match="this file of the plugin has no page; install the package with its extra `ui`"):
        terminal.type("ui")


def test_only_the_page_imports_its_extra() -> None:
    rooms = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"]
    files = [path for room in rooms for path in room.rglob("*.py")]
    imported = {
        path.relative_to(ROOT): {name for _, name in imports_of(ast.parse(path.read_text("utf-8")))} for path in files
    }
    page = Path("cli/tidb/ui")
    with_extra = {path for path, names in imported.items() if any(name.startswith(EXTRA) for name in names)}
    assert with_extra
    assert {page} == {path.parent for path in with_extra}
    assert page / "command.py" not in with_extra
    assert not {
        path
        for path, names in imported.items()
        if path.parent != page or path.name == "command.py"
        for name in names
        if name.startswith("cli.tidb.ui.") and not name.startswith("cli.tidb.ui.command")
    }
