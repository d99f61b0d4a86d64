"""The chart as an archive, with its README and the licence."""

import os
import shutil
import subprocess
from pathlib import Path

from release.source import ROOT, Source, semver


def helm() -> str | None:
    """The Helm that `make helm` builds, else one on PATH, None where no Helm is installed."""
    built = ROOT / "hack" / "helm" / "bin" / "helm"
    return str(built) if built.exists() else shutil.which("helm")


def package(source: Source, images: str, target: Path) -> Path | None:
    """Package the chart, None without Helm. `images` is the repository that its images are in, empty: none is named."""
    program = helm()
    if program is None:
        return None
    chart = source.directory / "charts" / "tidb-operator"
    shutil.copy(source.directory / "LICENSE", chart)
    version = semver(source.version)
    values = chart / "values.yaml"
    prefix = f"{images}/" if images else ""
    text = values.read_text("utf-8")
    for name in ("tidb-operator-py", "tidb-operator-py-backup-manager"):
        assert f": {name}:latest\n" in text, f"values.yaml names no image {name}"
        text = text.replace(f": {name}:latest\n", f": {prefix}{name}:{version}\n")
    values.write_text(text, "utf-8")
    command = [program, "package", str(chart), "--version", version, "--app-version", version]
    environ = {"HOME": str(source.directory), "PATH": os.environ["PATH"]}
    subprocess.run([*command, "--destination", str(target)], check=True, capture_output=True, env=environ)
    return target / f"tidb-operator-{version}.tgz"
