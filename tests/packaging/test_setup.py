"""Missing programs of a machine are named, with the packages that provide them (`hack/setup.sh`)."""

import configparser
import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def set_up(directory: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the script with nothing else in its environment, and without the system's Python."""
    with start(directory, **environ) as process:
        stdout, stderr = process.communicate(timeout=30)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def start(directory: Path, **environ: str) -> subprocess.Popen[str]:
    """Start the script, with the programs of `directory` and those few of the system that it needs."""
    tools = directory / "tools"
    tools.mkdir(exist_ok=True)
    for name in ("find", "mkdir", "rm"):
        if not (tools / name).exists():
            (tools / name).symlink_to(str(shutil.which(name)))
    return subprocess.Popen(
        [str(ROOT / "hack" / "setup.sh"), str(directory / "venv")],
        env={"PATH": f"{directory}:{tools}", "SYSTEM_PYTHON": "", **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def make_python(directory: Path, body: str, name: str = "python3.11") -> Path:
    """Something that is called as Python is, and does what `body` says."""
    python = directory / name
    python.write_text(f"#!/bin/sh\n{body}\n")
    python.chmod(0o755)
    return python


def test_the_development_lock_pins_each_declared_package() -> None:
    declared = configparser.ConfigParser()
    declared.read(ROOT / "setup.cfg")
    texts = (declared["options"]["install_requires"], declared["options.extras_require"]["dev"])
    lines = [line.strip() for text in texts for line in text.splitlines()]
    wanted = {re.split(r"[\[<>=~ ]", line)[0].lower() for line in lines if line and not line.startswith("#")}
    pinned = re.findall(r"^([\w.-]+)==", (ROOT / "hack" / "dev.lock").read_text(), re.MULTILINE)
    assert set() == wanted - set(pinned)


def test_a_missing_python_is_named(tmp_path: Path) -> None:
    done = set_up(tmp_path)
    assert 1 == done.returncode
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "apt-get install python3" in done.stderr


@pytest.mark.parametrize(
    ("body", "complaint"),
    [('echo "Python 3.9"; test "$1" = --version', "is Python 3.9; 3.11 or newer is needed"), (None, "does not start")],
)
def test_a_python_of_the_user_that_cannot_be_used_is_named(tmp_path: Path, body: str | None, complaint: str) -> None:
    python = tmp_path / "mine" if body is None else make_python(tmp_path, body, "mine")
    done = set_up(tmp_path, PYTHON=str(python))
    assert (1, f"setup: PYTHON={python} {complaint}\n") == (done.returncode, done.stderr)


def test_a_missing_venv_or_pip_is_named_with_its_packages(tmp_path: Path) -> None:
    make_python(tmp_path, 'case "$2" in *ensurepip*) exit 1;; esac')
    done = set_up(tmp_path)
    assert 1 == done.returncode
    assert "apt-get install python3-venv python3-pip" in done.stderr


@pytest.mark.parametrize("version", ["old", "new"])
def test_the_first_python_that_is_new_enough_is_taken(tmp_path: Path, version: str) -> None:
    make_python(tmp_path, f'echo "$0 {version} $*" >> {tmp_path}/calls; test {version} = new')
    done = set_up(tmp_path)
    assert 1 == done.returncode  # this stand-in makes no virtual environment
    assert ("-m venv" in (tmp_path / "calls").read_text()) is (version == "new")


@pytest.mark.parametrize("has_venv", [True, False])
def test_the_systems_python_is_preferred_if_it_has_venv(tmp_path: Path, has_venv: bool) -> None:
    make_python(tmp_path, f'echo "$*" >> {tmp_path}/other.calls')
    lacks = 'case "$2" in *venv*) exit 1;; esac'
    system = make_python(
        tmp_path, f'echo "$*" >> {tmp_path}/system.calls; {"" if has_venv else lacks}', "system-python"
    )
    set_up(tmp_path, SYSTEM_PYTHON=str(system))  # these stand-ins make no virtual environment
    made = [calls.name for calls in tmp_path.glob("*.calls") if "-m venv" in calls.read_text()]
    assert ["system.calls" if has_venv else "other.calls"] == made


VENV = """
case "$*" in
*"-m venv"*)
    echo "$*" >> "$0.calls"
    for dir; do :; done
    mkdir -p "$dir/bin"
    touch "$dir/pyvenv.cfg"
    printf '#!/bin/sh\\necho "$*" >> "$0.calls"\\n' > "$dir/bin/python"
    chmod +x "$dir/bin/python" ;;
esac
"""


@pytest.mark.parametrize("left", ["nothing", "a Python without pip", "no Python", "an old Python"])
def test_an_environment_that_cannot_be_used_is_replaced(tmp_path: Path, left: str) -> None:
    python = make_python(tmp_path, f"PATH={os.environ['PATH']}; {VENV}")
    venv = tmp_path / "venv"
    if left != "nothing":
        (venv / "bin").mkdir(parents=True)
        (venv / "pyvenv.cfg").touch()
    if left == "a Python without pip":
        make_python(venv / "bin", 'test "$1" = -c', "python")
    if left == "an old Python":
        make_python(venv / "bin", 'test "$1" = -m', "python")
    done = set_up(tmp_path)
    assert (0, "") == (done.returncode, done.stderr)
    cleared = "" if left == "nothing" else "--clear "
    assert f"-m venv {cleared}{venv}\n" == Path(f"{python}.calls").read_text("utf-8")
    assert "-m pip install -q" in (venv / "bin" / "python.calls").read_text("utf-8")


def test_a_directory_that_is_no_environment_keeps_its_files(tmp_path: Path) -> None:
    make_python(tmp_path, f"PATH={os.environ['PATH']}; {VENV}")
    mine = tmp_path / "venv" / "thesis.txt"
    mine.parent.mkdir()
    mine.write_text("mine", "utf-8")
    set_up(tmp_path)
    assert "mine" == mine.read_text("utf-8")
    assert "--clear" not in (tmp_path / "python3.11.calls").read_text("utf-8")


def test_waits_for_another_installation_and_does_not_repeat_it(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    venv.mkdir()
    held = os.open(venv, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with start(tmp_path, PYTHON=sys.executable) as waiting:
        assert waiting.stdout
        assert f"setup: waiting for another installation into {venv}\n" == waiting.stdout.readline()
        (venv / ".setup-").touch()
        os.close(held)
        assert ("", 0) == (waiting.stdout.read(), waiting.wait(30))


def test_shellcheck_finds_nothing_in_our_scripts() -> None:
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None and not os.environ.get("REQUIRE_EVERYTHING"):
        pytest.skip("shellcheck is not installed")
    scripts = [*sorted((ROOT / "hack").rglob("*.sh")), ROOT / ".ci" / "run"]
    done = subprocess.run(
        [str(shellcheck), *map(str, scripts)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (0, "") == (done.returncode, done.stdout)
