"""The image can't be built without a container engine; its install steps run here, and the installed programs start."""

import configparser
import fnmatch
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

from apis.backups import BackupSpec
from apis.restores import RestoreSpec
from backup_manager.tool_arguments import dumpling, lightning

ROOT = Path(__file__).resolve().parents[2]
NO_SOURCE = (".git", ".venv", ".*_cache", "*.egg-info", "build", "bin", "tests", "__pycache__", "node_modules")
LOCKS = ROOT / "hack" / "image"

LARGEST_IMAGE = 80
"""Megabytes of packages in the operator's image; the interpreter's own are the base's. grpcio takes 19 of them."""

pytestmark = pytest.mark.slow


NOBODY = 65534 if os.geteuid() == 0 else None
"""A user without rights, if this process may choose one; else the user who runs the tests."""


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
    """The result of the first stage, made by its own steps, by a user without rights, outside the tree."""
    # not pytest's directory, which only its owner may enter
    with tempfile.TemporaryDirectory() as directory:
        yield _built(Path(directory), python)


def _built(directory: Path, python: str) -> Path:
    shutil.copytree(ROOT, directory / "src", ignore=_left_out)
    _give_away(directory)
    for step in _install_steps():
        moved = step.replace("/opt/", f"{directory}/opt/").replace("/src", f"{directory}/src")
        moved = moved.replace("${LOCK}", "backup.lock")
        command = [python if word == "python" else word for word in shlex.split(moved)]
        done = _run(command, directory)
        assert done.returncode == 0, f"{step}\n{done.stdout}{done.stderr}"
    return directory


def _left_out(directory: str, names: list[str]) -> set[str]:
    """The files that .dockerignore excludes from the build."""
    patterns = [pattern.removeprefix("**/") for pattern in (ROOT / ".dockerignore").read_text().split()]
    inside = {name: (Path(directory) / name).relative_to(ROOT).as_posix() for name in names}
    return {
        name
        for name, path in inside.items()
        if any(fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(name, pattern) for pattern in patterns)
    }


def test_downloads_are_locked_with_hashes() -> None:
    downloads = [step for step in _install_steps() if " pip " in step and "--no-index" not in step]
    assert [] == [step for step in downloads if not re.search(r"--require-hashes .*--requirement", step)]
    for name in ("requirements", "build", "backup", "kms"):
        pinned = re.split(r"\n(?=\S)", (LOCKS / f"{name}.lock").read_text().strip())
        assert [] == [each for each in pinned if not re.match(r"[\w.-]+==[\w.]+ .*--hash=sha256:", each, re.DOTALL)]


def test_the_lock_has_the_declared_packages_except_for_the_sandbox_and_the_cli() -> None:
    declared = configparser.ConfigParser()
    declared.read(ROOT / "setup.cfg")
    extras = declared["options.extras_require"]
    wanted = _lines(declared["options"]["install_requires"]) | _lines(extras["grpc"]) | _lines(extras["socks"])
    locked = _lines((LOCKS / "requirements.in").read_text())
    assert {"jsonpatch", "rich"} == {_name(each) for each in wanted} - {_name(each) for each in locked}
    # the image may take an older release than users do, such as the lightest one of `kubernetes`
    assert [] == [each for each in locked if each not in wanted and each.partition(",<")[0] not in wanted]
    pinned = (LOCKS / "requirements.lock").read_text().lower()
    assert [] == [each for each in locked if f"{_name(each).lower()}==" not in pinned]


def test_the_lock_of_backup_manager_is_the_operators_and_the_extra() -> None:
    declared = configparser.ConfigParser()
    declared.read(ROOT / "setup.cfg")
    extra = _lines(declared["options.extras_require"]["backup"])
    assert {"-r requirements.in"} | extra == _lines((LOCKS / "backup.in").read_text())
    ours, theirs = (set(re.findall(r"^\S+==\S+", (LOCKS / name).read_text(), re.MULTILINE)) for name in _BOTH)
    assert theirs < ours
    assert {_name(each) for each in extra} == {_name(each) for each in ours - theirs}


def test_the_lock_with_kms_is_the_lock_of_backup_manager_and_the_extra() -> None:
    declared = configparser.ConfigParser()
    declared.read(ROOT / "setup.cfg")
    extra = _lines(declared["options.extras_require"]["kms"])
    assert {"-r backup.in"} | extra == _lines((LOCKS / "kms.in").read_text())
    names = ("kms.lock", "backup.lock")
    ours, theirs = (set(re.findall(r"^\S+==\S+", (LOCKS / name).read_text(), re.MULTILINE)) for name in names)
    # botocore wants an older python-dateutil
    assert {"python-dateutil"} == {_name(each) for each in theirs - ours}
    assert {"botocore", "jmespath", "python-dateutil"} == {_name(each) for each in ours - theirs}


_BOTH = ("backup.lock", "requirements.lock")


def _lines(text: str) -> set[str]:
    return {line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")}


def _name(requirement: str) -> str:
    return re.split(r"[<>=~]", requirement)[0]


def test_the_base_is_pinned_by_digest() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert re.search(r"^ARG BASE=python:3\.11-slim@sha256:[0-9a-f]{64}$", text, re.MULTILINE)


def test_files_that_make_builds_in_hack_stay_out_of_the_build() -> None:
    sets = [path.name for path in (ROOT / "hack").iterdir() if (path / "build.sh").exists()]
    assert [] == [name for name in sets if name not in _left_out(str(ROOT / "hack"), sets)]


def test_the_second_stage_runs_without_rights_and_without_build_tools() -> None:
    final = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ${BASE}\n")[2]
    assert re.search(r"^USER 65532:65532$", final, re.MULTILINE)
    assert "pip uninstall --yes" in final
    assert "COPY --from=build /opt/tidb-operator /opt/tidb-operator" in final
    assert "apt-get" not in final


def test_the_image_of_backups_has_the_tools_and_our_entrypoint() -> None:
    text = (ROOT / "Dockerfile").read_text()
    stage = text.partition("\nFROM ${BASE} AS backup-manager\n")[2].partition("\nFROM ")[0]
    assert "COPY --from=dumpling /dumpling /dumpling\n" in stage
    assert "COPY --from=lightning /tidb-lightning /tidb-lightning\n" in stage
    assert re.search(r'^ENTRYPOINT \["/usr/local/bin/backup-manager"\]$', stage, re.MULTILINE)
    paths = (dumpling(BackupSpec()), lightning(RestoreSpec()))
    assert ("/dumpling", "/tidb-lightning") == paths


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("command", "flag"),
    [
        ("tidb-operator/bin/tidb-controller-manager", "-version"),
        ("tidb-operator/bin/tidb-controller-manager-check", "-h"),
        ("tidb-operator/bin/tidb-discovery", "-V"),
        ("tidb-operator/bin/tidb-scheduler", "-version"),
        ("backup-manager/bin/backup-manager", "--help"),
    ],
)
def test_every_command_starts(image: Path, command: str, flag: str) -> None:
    done = _run([str(image / "opt" / command), flag], image)
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout


@pytest.mark.thorough
def test_neither_build_tools_nor_sandbox_nor_simulator_are_installed(image: Path) -> None:
    left_out = ("pip", "wheel", "setuptools", "sandbox", "rehearsal", "simulate", "cli", "library", "tests", "obstore")
    assert [] == [name for name in left_out if (_packages(image) / name).exists()]
    for command in ("tidb-operator", "backup-manager"):
        assert not (image / "opt" / "tidb-operator" / "bin" / command).exists()


@pytest.mark.thorough
def test_the_installed_tree_is_small(image: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = {each.name: _megabytes(each) for each in _packages(image).iterdir()}
    with capsys.disabled():
        largest = sorted(sizes.items(), key=lambda each: -each[1])[:5]
        print(f"\nthe operator's image: {sum(sizes.values()):.0f} MB of packages, of which {largest}")  # noqa: T201
    assert sum(sizes.values()) < LARGEST_IMAGE
    assert [] == [name for name in sizes if name.startswith(("boto", "aiohttp", "pydantic"))]


def _megabytes(path: Path) -> float:
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    return round(sum(each.stat().st_size for each in files) / 1e6, 1)


@pytest.mark.thorough
def test_all_modules_are_compiled_so_that_a_start_on_a_read_only_root_compiles_nothing(image: Path) -> None:
    missing = [
        path
        for path in _packages(image).rglob("*.py")
        if path.relative_to(_packages(image)).parts[0] != "kubernetes"  # no pod loads it
        and not list((path.parent / "__pycache__").glob(f"{path.stem}.*"))
    ]
    assert [] == missing


@pytest.mark.thorough
def test_the_kubernetes_package_is_there_and_not_loaded(image: Path) -> None:
    code = "import controller_manager.main, discovery.main, sys; print('kubernetes' in sys.modules)"
    python = str(image / "opt" / "tidb-operator" / "bin" / "python")
    assert "False\n" == _run([python, "-c", code], image).stdout
    assert 0 == _run([python, "-c", "import kubernetes.config.exec_provider"], image).returncode


@pytest.mark.thorough
def test_the_users_installation_brings_a_cluster_up(python: str) -> None:
    """Every file that is read at run time is part of the package."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        shutil.copytree(ROOT, directory / "src", ignore=shutil.ignore_patterns(*NO_SOURCE))
        _give_away(directory)
        venv = directory / "venv"
        for command in (
            [python, "-m", "venv", "--without-pip", str(venv)],
            [
                python,
                "-m",
                "pip",
                "--python",
                str(venv / "bin" / "python"),
                "install",
                "-q",
                "--no-compile",
                str(directory / "src"),
            ],
        ):
            done = _run(command, directory)
            assert done.returncode == 0, done.stdout + done.stderr
        operator = str(venv / "bin" / "tidb-operator")
        installed = Path(_run([operator, "manifests"], directory).stdout.strip())
        assert installed.is_relative_to(venv)
        for brought in ("crds/pingcap.com_tidbclusters.yaml", "operator/rbac-cluster.yaml", "monitoring/alerts.yaml"):
            assert (ROOT / "manifests" / brought).read_text() == (installed / brought).read_text()
        sample = installed / "samples" / "basic.yaml"
        done = _run([operator, "run", "--sandbox", "--cluster", str(sample), "--exit-when-ready"], directory)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ready after" in done.stdout


def _packages(image: Path) -> Path:
    return next((image / "opt" / "tidb-operator" / "lib").glob("python3*")) / "site-packages"


def _install_steps() -> list[str]:
    """The RUN lines of the stages that build."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    stage = text.partition("\nFROM ")[2].partition("\nFROM ${BASE} AS backup-manager")[0]
    return [re.sub(r"\s+", " ", step) for step in re.findall(r"^RUN (.+)$", stage, re.MULTILINE)]


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
        timeout=290,
        check=False,
        user=NOBODY,
        group=NOBODY,
    )
