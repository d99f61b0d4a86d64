"""The image can't be built without a container engine; its install steps can be run, and what they install started."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = (".git", ".venv", ".*_cache", "*.egg-info", "build", "bin", "tests", "bench", "__pycache__")

pytestmark = pytest.mark.slow


NOBODY = 65534 if os.geteuid() == 0 else None
"""A user without rights, where this process may choose one; else it is whoever runs the tests."""


@pytest.fixture(scope="module")
def python() -> str:
    """An interpreter with pip that this user may run."""
    candidates = filter(
        None, (shutil.which(name, path="/usr/bin:/usr/local/bin") for name in ("python3.11", "python3"))
    )
    for candidate in (*candidates, sys.executable):
        try:
            done = _run([candidate, "-c", "import pip, venv, sys; sys.exit(sys.version_info < (3, 11))"], Path("/tmp"))
        except PermissionError:
            continue
        if done.returncode == 0:
            return candidate
    pytest.skip("no Python 3.11 with pip and venv that a user without rights may run")


@pytest.fixture(scope="module")
def image(python: str) -> Iterator[Path]:
    """What the first stage leaves behind, made by its own steps, by a user without rights, outside the tree."""
    # not pytest's directory, which only its owner may enter
    with tempfile.TemporaryDirectory() as directory:
        yield _built(Path(directory), python)


def _built(directory: Path, python: str) -> Path:
    shutil.copytree(ROOT, directory / "src", ignore=shutil.ignore_patterns(*SOURCE))
    _give_away(directory)
    for step in _install_steps():
        moved = step.replace("/opt/tidb-operator", f"{directory}/opt").replace("/src", f"{directory}/src")
        command = [python if word == "python" else word for word in shlex.split(moved)]
        done = _run(command, directory)
        assert done.returncode == 0, f"{step}\n{done.stdout}{done.stderr}"
    return directory


def test_the_first_stage_installs_with_pip_alone() -> None:
    assert len(_install_steps()) == 2


def test_the_second_stage_runs_without_rights_and_without_build_tools() -> None:
    final = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    assert re.search(r"^USER 65532:65532$", final, re.MULTILINE)
    assert "pip uninstall --yes" in final
    assert "COPY --from=build /opt/tidb-operator /opt/tidb-operator" in final
    assert "apt-get" not in final


@pytest.mark.parametrize(
    ("command", "flag"), [("tidb-controller-manager", "-version"), ("tidb-discovery", "-V"), ("tidb-operator", "-h")]
)
def test_every_command_starts(image: Path, command: str, flag: str) -> None:
    done = _run([str(image / "opt" / "bin" / command), flag], image)
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout


def test_what_is_installed_brings_a_cluster_up(image: Path) -> None:
    """Every file that is read at run time is part of the package."""
    operator = str(image / "opt" / "bin" / "tidb-operator")
    installed = Path(_run([operator, "manifests"], image).stdout.strip())
    assert installed.is_relative_to(image / "opt")
    for brought in ("crds/pingcap.com_tidbclusters.yaml", "operator/rbac-cluster.yaml", "monitoring/alerts.yaml"):
        assert (ROOT / "manifests" / brought).read_text() == (installed / brought).read_text()
    sample = installed / "samples" / "basic.yaml"
    done = _run([operator, "run", "--sandbox", "--cluster", str(sample), "--exit-when-ready"], image)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ready after" in done.stdout


def test_no_build_tool_is_installed(image: Path) -> None:
    site = next((image / "opt" / "lib").glob("python3*")) / "site-packages"
    assert [] == [name for name in ("pip", "wheel") if (site / name).exists()]


def _install_steps() -> list[str]:
    """The RUN lines of the first stage."""
    stage = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").partition("\nFROM ")[2].partition("\nFROM ")[0]
    return re.findall(r"^RUN (.+)$", stage, re.MULTILINE)


def _give_away(directory: Path) -> None:
    if NOBODY is not None:
        for path in (directory, *directory.rglob("*")):
            os.chown(path, NOBODY, NOBODY)


def _run(command: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    keep = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}
    return subprocess.run(
        command,
        cwd=directory,
        env={**keep, "HOME": str(directory), "PATH": os.environ["PATH"], "TMPDIR": str(directory)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        user=NOBODY,
        group=NOBODY,
    )
