"""The images, where a builder exists. Only a workflow pushes them, for amd64 and arm64."""

import shutil
import subprocess
from collections.abc import Iterator

from release.source import Source, commit, semver

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
        yield f"image: no builder ({', '.join(_BUILDERS)}): not built"
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
