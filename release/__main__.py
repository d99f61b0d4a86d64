"""`python -m release VERSION`: build every artefact of a release into `dist`, and print one line about each.

Nothing is pushed, tagged or signed; the workflow of releases does that with what this has built.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from release import deployment, plugin, sbom
from release.source import ROOT, build_library, build_operator, builder, export, notes, uncommitted

_BILLS = {
    "tidb-operator-py": "requirements.lock",
    "tidb-operator-py-backup-manager": "backup.lock",
    "kubectl-tidb": "plugin.lock",
}
"""The bills of materials, each with the lock that it lists."""

_SUMS = "SHA256SUMS"


def main() -> int:
    """Build a release; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    parser.add_argument("version", help="e.g. 1.0.0, or 1.0.0rc1")
    parser.add_argument("--target", type=Path, default=ROOT / "dist", help="where artefacts go (default: dist)")
    parser.add_argument("--images", default="", help="the repository of images that the chart names")
    parser.add_argument("--url", default="", help="where the archive of the plugin can be downloaded, for krew")
    parser.add_argument("--this-machine", action="store_true", help="build the plugin for this Python alone")
    parser.add_argument("--no-image", action="store_true", help="build no image")
    given = parser.parse_args()
    try:
        for line in build(given):
            print(line, flush=True)
    except (ValueError, RuntimeError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def build(given: argparse.Namespace) -> Iterator[str]:
    """Build the artefacts; yield one line about each."""
    target: Path = given.target.absolute()
    work = ROOT / "build" / "release"
    source = export(given.version, work / "source")
    if uncommitted():
        yield "warning: uncommitted changes are not part of the release"
    empty(target)
    python = builder(source, work / "python")
    build_operator(source, python, target)
    build_library(source, python, work / "library", target)
    machines = plugin.this_machine() if given.this_machine else plugin.every_machine()
    file = plugin.build(source, work / "plugin", target, machines)
    plugin.krew_manifest(source, plugin.package(source, file, target), given.url, target)
    if deployment.package(source, given.images, target) is None:
        yield "chart: no Helm (make helm): not packaged"
    for subject, lock in _BILLS.items():
        sbom.write(source, subject, lock, target)
    (target / "NOTES.md").write_text(notes(source), "utf-8")
    yield from _checksums(target)
    yield from () if given.no_image else deployment.build(source)


def empty(target: Path) -> None:
    """Create the directory, or remove an earlier release from it. Raises ValueError if it has other files."""
    target.mkdir(parents=True, exist_ok=True)
    left = list(target.iterdir())
    if left and not (target / _SUMS).exists():
        raise ValueError(
            f"--target {target} has files and no {_SUMS}, so it is no earlier release; name another directory"
        )
    for each in left:
        each.unlink()


def _checksums(target: Path) -> Iterator[str]:
    """Write SHA256SUMS; yield the artefacts with their sizes."""
    lines = []
    for path in sorted(target.iterdir()):
        lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
        yield f"{path.stat().st_size / 1e6:8.2f} MB  {path.name}"
    (target / _SUMS).write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
