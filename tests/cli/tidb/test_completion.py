"""Completion: what may come next, and the shells that ask for it."""

import argparse
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.failures import Failure
from cli.tidb.completing import FILES, Line, completions
from cli.tidb.completion import SCRIPTS, main
from cli.tidb.main import COMMANDS, make_parser
from cli.tidb.output import Output
from cli.tidb.session import Session
from ports.clock import FakeClock
from tests.cli.tidb.typing_commands import Terminal, ThisServer
from tests.operator_world import OperatorWorld


@pytest.mark.parametrize(
    "typed",
    [
        ("", sorted(COMMANDS)),
        ("sta", ["status"]),
        ("frob", []),
        ("status ", ["basic"]),
        ("status x", []),
        ("pause basic ", []),
        (
            "restart basic ",
            ["basic-discovery-btkgxmjxdm-9bkbq", "basic-pd-0", "basic-tidb-0", "basic-tikv-0", "pd", "tidb", "tikv"],
        ),
        ("restart basic tik", ["tikv"]),
        ("restart nobody ", []),
        ("drain node-", ["node-0", "node-1", "node-2"]),
        ("status -n kube-s", ["kube-system"]),
        ("-n default status ", ["basic"]),
        ("-n elsewhere status ", []),
        ("--namespace=elsewhere status ", []),
        ("status --context ", ["east", "west"]),
        ("status -o ", ["json", "table", "yaml"]),
        ("status --kube", ["--kubeconfig"]),
        ("--kubeconfig ", [FILES]),
        ("logs --al", ["--all-containers"]),
        ("logs -f basic tid", ["tidb"]),
        ("completion ", sorted(SCRIPTS)),
    ],
)
def test_completes_commands_flags_and_names(running: OperatorWorld, typed: tuple[str, list[str]]) -> None:
    words, expected = typed

    def open_session(given: argparse.Namespace) -> Session:
        return Session(ThisServer(running.admin), FakeClock(), Output(), given.namespace)

    assert expected == completions(Line(words.split(" "), make_parser()), open_session)


def test_completes_nothing_if_the_server_does_not_answer() -> None:
    def open_session(_: argparse.Namespace) -> Session:
        raise Failure("no server")

    assert [] == completions(Line(["status", ""], make_parser()), open_session)


def test_requests_file_completion_only_for_file_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["resu"])
    assert "resume\n:4\n" == capsys.readouterr().out
    assert 0 == main(["status", "--kubeconfig", ""])
    assert ":0\n" == capsys.readouterr().out


def asked(directory: Path) -> None:
    """Create a kubectl_complete-tidb that records its arguments in the file `asked` and prints fixed words."""
    program = directory / "kubectl_complete-tidb"
    program.write_text('#!/bin/sh\necho "$# $*" >> asked\nprintf "basic\\nbig one\\n:4\\n"\n')
    program.chmod(0o755)


def test_bash_completes(tmp_path: Path, terminal: Terminal) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    asked(tmp_path)
    script = f"""{terminal.type("completion", "bash")}
        COMP_WORDS=(kubectl-tidb status "") COMP_CWORD=2
        _kubectl_tidb
        printf '%s|' "${{COMPREPLY[@]}}"
        complete -p kubectl-tidb
    """
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(
        [bash, "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=20, check=False
    )
    assert (0, "") == (done.returncode, done.stderr)
    assert "basic|big one|complete -F _kubectl_tidb kubectl-tidb\n" == done.stdout
    assert "2 status \n" == (tmp_path / "asked").read_text()


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_completion_script_is_valid_in_its_shell(shell: str, terminal: Terminal) -> None:
    script = terminal.type("completion", shell)
    assert "kubectl_complete-tidb" in script
    program = shutil.which(shell)
    if program is None:
        assert not os.environ.get("REQUIRE_EVERYTHING"), f"{shell} is missing"
        pytest.skip(f"there is no {shell}")
    done = subprocess.run([program, "-n"], input=script, capture_output=True, text=True, timeout=20, check=False)
    assert (0, "") == (done.returncode, done.stderr)
