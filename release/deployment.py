"""The images, and the chart that names them. Only a workflow pushes images, for amd64 and arm64."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from release.source import ROOT, Source, commit, semver

_BUILDERS = {"docker": "info", "podman": "info", "buildah": "info"}
"""The programs that build images, with the command that succeeds if they can."""

TARGETS = {"tidb-operator-py": "", "tidb-operator-py-backup-manager": "backup-manager"}
"""The images, each with its stage of the Dockerfile; empty: the last one."""


def builder() -> str | None:
    """The first program that can build an image here."""
    for name, probe in _BUILDERS.items():
        if shutil.which(name) and subprocess.run([name, probe], capture_output=True, check=False).returncode == 0:
            return name
    return None


def build(source: Source) -> Iterator[str]:
    """Build each image for this machine; yield a line about each."""
    program = builder()
    if program is None:
        yield f"images: not built, because none of {', '.join(_BUILDERS)} works on this machine"
        return
    version = semver(source.version)
    for name, stage in TARGETS.items():
        command = [program, "build", "--tag", f"{name}:{version}", *_arguments(version, source.epoch)]
        command += ["--target", stage] if stage else []
        subprocess.run([*command, str(source.directory)], check=True)
        yield f"image: {name}:{version}"


def _arguments(version: str, epoch: int) -> list[str]:
    values = {"VERSION": version, "REVISION": commit(), "SOURCE_DATE_EPOCH": str(epoch)}
    return [part for name, value in values.items() for part in ("--build-arg", f"{name}={value}")]


def helm() -> str | None:
    """The Helm that `make helm` builds, else one on PATH, None where no Helm is installed."""
    built = ROOT / "hack" / "helm" / "bin" / "helm"
    return str(built) if built.exists() else shutil.which("helm")


def package(source: Source, images: str, target: Path) -> Path | None:
    """The chart as an archive, with its README and the licence; None without Helm.

    `images` is the repository of its images; empty: none is named.
    """
    program = helm()
    if program is None:
        return None
    chart = source.directory / "charts" / "tidb-operator"
    shutil.copy(source.directory / "LICENSE", chart)
    version = semver(source.version)
    values = chart / "values.yaml"
    prefix = f"{images}/" if images else ""
    text = values.read_text("utf-8")
    for name in TARGETS:
        assert f": {name}:latest\n" in text, f"values.yaml names no image {name}"
        text = text.replace(f": {name}:latest\n", f": {prefix}{name}:{version}\n")
    values.write_text(text, "utf-8")
    command = [program, "package", str(chart), "--version", version, "--app-version", version]
    environ = {"HOME": str(source.directory), "PATH": os.environ["PATH"]}
    subprocess.run([*command, "--destination", str(target)], check=True, capture_output=True, env=environ)
    return target / f"tidb-operator-{version}.tgz"
