"""`kubectl tidb` as a single file, and the manifest by which krew installs it.

The file is an archive that Python runs (PEP 441). It holds the modules that the commands of the plugin import, and the
distributions that these need; `kubernetes`, the largest of the operator, is not among them. One of them, msgspec, is
compiled, so the archive has it for each supported Python and machine.
"""

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from library.build import find, imports_of
from release.source import Source, semver

NAME = "kubectl-tidb"

PYTHONS = ("3.11", "3.12", "3.13", "3.14")

COMPILED = ("msgspec",)
"""The distributions without a version in plain Python."""

_LEFT_OUT = re.compile(r"\.(so|pyd|pyi|dist-info/(RECORD|INSTALLER|REQUESTED))$|/bin/|__pycache__")

_COMMANDS = re.compile(r'"(cli(?:\.\w+)+):[A-Z]+"')


class Platform(NamedTuple):
    """A machine, as Python and the krew manifest name it, and the wheels that run on it, best first."""

    system: str
    machine: str
    wheels: Sequence[str]

    @property
    def tag(self) -> str:
        """Like `plugin_start.native` computes it."""
        return f"{self.system}-{self.machine}"


PLATFORMS = (
    Platform("linux", "x86_64", ("manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_28_x86_64")),
    Platform("linux", "arm64", ("manylinux_2_17_aarch64", "manylinux2014_aarch64", "manylinux_2_28_aarch64")),
    Platform("darwin", "x86_64", ("macosx_10_15_x86_64", "macosx_10_13_x86_64", "macosx_10_9_x86_64")),
    Platform("darwin", "arm64", ("macosx_11_0_arm64",)),
)


def this_machine() -> list[tuple[str, Platform]]:
    """The Python and the machine that run this: enough for a test."""
    machine = os.uname().machine.replace("aarch64", "arm64")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return [(python, each) for each in PLATFORMS if (each.system, each.machine) == (sys.platform, machine)]


def every_machine() -> list[tuple[str, Platform]]:
    """All Pythons and machines that a release supports."""
    return [(python, platform) for platform in PLATFORMS for python in PYTHONS]


def build(source: Source, work: Path, target: Path, machines: Iterable[tuple[str, Platform]]) -> Path:
    """Build the file; its path."""
    shutil.rmtree(work, ignore_errors=True)
    tree = work / "tree"
    for path in sorted(modules_of_plugin()):
        _copy(source.directory / path, tree / path)
    for data in _data(source.directory, tree):
        _copy(source.directory / data, tree / data)
    lock = (source.directory / "hack" / "image" / "plugin.lock").read_text("utf-8")
    _install(_requirements(lock, without=COMPILED), work, tree, [])
    for python, platform in machines:
        tag = f"cpython-{python.replace('.', '')}-{platform.tag}"
        options = ["--python-version", python, "--implementation", "cp"]
        options += [option for wheel in platform.wheels for option in ("--platform", wheel)]
        _install(_requirements(lock, only=COMPILED), work, tree / "native" / tag, options)
    _metadata(tree, source.version)
    return _archive(tree, target / NAME, source)


def modules_of_plugin() -> set[Path]:
    """The files of the modules that the commands of the plugin import, relative to the root."""
    root = Path(__file__).resolve().parents[1]
    table = (root / "cli" / "tidb" / "main.py").read_text("utf-8")
    waiting = ["cli.tidb.__main__", "cli.tidb.main", "cli.tidb.completion", *_COMMANDS.findall(table)]
    found: dict[str, Path] = {}
    while waiting:
        name = waiting.pop()
        path = find(name)
        if name in found or path is None:
            continue
        found[name] = path.relative_to(root)
        parts = name.split(".")
        waiting += [".".join(parts[:length]) for length in range(1, len(parts))]
        waiting += [imported for _, imported in imports_of(ast.parse(path.read_text("utf-8")))]
    return set(found.values())


def _data(root: Path, tree: Path) -> Iterator[Path]:
    """Files that the packages in the tree read."""
    packages = {path.parent.relative_to(tree) for path in tree.rglob("*.py")}
    for package in packages:
        files = (path for path in (root / package).iterdir() if path.suffix in (".json", ".sh", ".yaml"))
        yield from (path.relative_to(root) for path in files)


def _requirements(lock: str, *, without: Sequence[str] = (), only: Sequence[str] = ()) -> str:
    """Some entries of a lock."""
    entries = re.split(r"\n(?=\S)", lock.strip())
    named = {entry.partition("==")[0]: entry for entry in entries}
    chosen = [entry for name, entry in named.items() if name not in without and (not only or name in only)]
    return "\n".join([*chosen, ""])


def _install(requirements: str, work: Path, target: Path, options: Sequence[str]) -> None:
    listed = work / "requirements.txt"
    listed.write_text(requirements, "utf-8")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--require-hashes"]
    command = [*pip, "--only-binary=:all:", "--target", str(target), *options, "--requirement", str(listed)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"pip cannot install what {target.name} needs:\n{done.stdout}{done.stderr}")


def _metadata(tree: Path, version: str) -> None:
    """The metadata by which the program reads its version."""
    metadata = tree / f"tidb_operator_py-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: tidb-operator-py\nVersion: {version}\n", "utf-8")


def _archive(tree: Path, target: Path, source: Source) -> Path:
    in_native = tree / "native"
    files = [
        path
        for path in sorted(tree.rglob("*"))
        if path.is_file() and (path.is_relative_to(in_native) or not _LEFT_OUT.search(path.as_posix()))
    ]
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.relative_to(tree).as_posix().encode() + path.read_bytes())
    text = Path(__file__).with_name("plugin_start.py").read_text("utf-8")
    start = text.replace("@VERSION@", source.version).replace("@DIGEST@", digest.hexdigest()[:16])
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo("__main__.py"), start)
            for path in files:
                entry = zipfile.ZipInfo(path.relative_to(tree).as_posix())
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    target.chmod(0o755)
    return target


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


def package(source: Source, plugin: Path, target: Path) -> Path:
    """The archive that krew downloads: the file and the licence."""
    path = target / f"{NAME}-{semver(source.version)}.tar.gz"

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = source.epoch, 0, 0, "", ""
        return entry

    with tarfile.open(path, "w:gz") as archive:
        archive.add(plugin, NAME, filter=plain)
        archive.add(source.directory / "LICENSE", "LICENSE", filter=plain)
    return path


def krew_manifest(source: Source, archive: Path, url: str, target: Path) -> Path:
    """The manifest for krew. `url` is the directory that the archive will be downloaded from."""
    platforms = [
        {
            "selector": {"matchLabels": {"os": each.system, "arch": each.machine.replace("x86_64", "amd64")}},
            "uri": f"{url.rstrip('/')}/{archive.name}" if url else archive.name,
            "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
            "bin": NAME,
        }
        for each in PLATFORMS
    ]
    manifest = {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "tidb"},
        "spec": {
            "version": f"v{semver(source.version)}",
            "shortDescription": "See and handle TiDB clusters",
            "description": "Shows the state of TiDB clusters, finds what is wrong with them, restarts and drains pods.",
            "caveats": "Needs Python 3.11 or newer.",
            "platforms": platforms,
        },
    }
    path = target / "tidb.krew.yaml"
    path.write_text(yaml.safe_dump(manifest, sort_keys=False), "utf-8")
    return path
