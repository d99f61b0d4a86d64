"""The source of a release, the last commit with the version of the release, and the distributions built from it."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_VERSION = re.compile(r"(?P<release>\d+\.\d+\.\d+)(?:(?P<kind>a|b|rc)(?P<number>\d+))?")
_WORDS = {"a": "alpha", "b": "beta", "rc": "rc"}
_DECLARED = re.compile(r"^version = .*$", re.MULTILINE)
_BUILD = """\
import sys
from setuptools import build_meta
target = sys.argv[1]  # the first build replaces the arguments
build_meta.build_sdist(target)
build_meta.build_wheel(target)
"""


@dataclass(frozen=True, slots=True)
class Source:
    """An exported tree. `epoch` is the time of its commit, in seconds, which makes archives reproducible."""

    directory: Path
    version: str
    epoch: int


def semver(version: str) -> str:
    """A version as Helm, krew and tags of images write it. Raises ValueError for one that no release may have.

    >>> semver("1.0.0rc1")
    '1.0.0-rc.1'
    """
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ValueError(f"VERSION is {version!r}; write it as 1.0.0, or as 1.0.0rc1 before the release")
    return found["release"] + (f"-{_WORDS[found['kind']]}.{found['number']}" if found["kind"] else "")


def export(version: str, directory: Path) -> Source:
    """Export the last commit with a version in setup.cfg, the only place that declares one. Raises ValueError."""
    semver(version)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    archive = _git("archive", "--format=tar", "HEAD")
    subprocess.run(["tar", "-xf", "-", "-C", str(directory)], input=archive, check=True)  # noqa: S607
    declared = directory / "setup.cfg"
    text, count = _DECLARED.subn(f"version = {version}", declared.read_text("utf-8"), count=1)
    assert count == 1, "setup.cfg declares no version"
    declared.write_text(text, "utf-8")
    return Source(directory, version, int(_git("log", "-1", "--format=%ct")))


def notes(source: Source) -> str:
    """The entry of the version in CHANGELOG.md, of its release for a candidate, else what is unreleased."""
    entries = re.split(r"^## ", (source.directory / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    release = re.split(r"[a-z]", source.version)[0]
    for wanted in (source.version, release, "Unreleased"):
        for entry in entries:
            title, _, text = entry.partition("\n")
            if wanted in re.findall(r"[\w.]+", title)[:1]:
                return text.strip() + "\n"
    return ""


def commit() -> str:
    """The commit that is built."""
    return _git("rev-parse", "HEAD").decode().strip()


def uncommitted() -> bool:
    """True if files differ from the commit, so that the release lacks these changes."""
    return bool(_git("status", "--porcelain", "--untracked-files=no"))


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S607


if __name__ == "__main__":
    print(semver(sys.argv[1]))


def builder(source: Source, directory: Path) -> Path:
    """A Python with the pinned build tools of the image (hack/image/build.lock)."""
    python = directory / "bin" / "python"
    _run([sys.executable, "-m", "venv", "--without-pip", str(directory)], source)
    lock = str(source.directory / "hack" / "image" / "build.lock")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--require-hashes"]
    _run([*pip, "--only-binary=:all:", "--requirement", lock], source)
    return python


def build_operator(source: Source, python: Path, target: Path) -> None:
    """Build the wheel and the source distribution of the operator."""
    _build(source, python, source.directory, target)


def build_library(source: Source, python: Path, work: Path, target: Path) -> None:
    """Build the wheel and the source distribution of the library."""
    _run([sys.executable, "-m", "library.build", str(work)], source)
    _build(source, python, work, target)


def _build(source: Source, python: Path, tree: Path, target: Path) -> None:
    _run([str(python), "-W", "ignore", "-c", _BUILD, str(target)], source, tree)


def _run(command: list[str], source: Source, directory: Path | None = None) -> None:
    environ = {**os.environ, "SOURCE_DATE_EPOCH": str(source.epoch)}
    done = subprocess.run(
        command, cwd=directory or source.directory, env=environ, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
