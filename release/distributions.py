"""Wheels and source distributions: of the operator, and of the library for authors of controllers."""

import os
import subprocess
import sys
from pathlib import Path

from release.source import Source

_BUILD = """\
import sys
from setuptools import build_meta
target = sys.argv[1]  # the first build replaces the arguments
build_meta.build_sdist(target)
build_meta.build_wheel(target)
"""


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
