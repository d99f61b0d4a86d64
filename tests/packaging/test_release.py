"""The artefacts of a release, built as by `make release`, each installed from its file."""

import ast
import hashlib
import json
import re
import resource
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

from library.build import imports_of
from release import deployment, plugin, sbom
from release.__main__ import empty
from release.source import ROOT, Source, notes, semver
from tests.packaging.test_library import run

VERSION = "1.0.0rc1"

MOST_CPU = 0.3
"""Seconds of CPU that `kubectl tidb --version` may take."""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The artefacts, the plugin for this Python and machine alone."""
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "release", VERSION, "--this-machine", "--no-image", "--target", str(target)]
    run(command, ROOT, {"HOME": str(tmp_path_factory.mktemp("home"))})
    return target


@pytest.mark.parametrize(
    ("version", "expected"), [("1.0.0", "1.0.0"), ("1.0.0rc1", "1.0.0-rc.1"), ("0.2.10b3", "0.2.10-beta.3")]
)
def test_a_version_is_written_as_helm_wants_it(version: str, expected: str) -> None:
    assert expected == semver(version)


@pytest.mark.parametrize("version", ["", "1.0", "v1.0.0", "1.0.0-rc.1", "1.0.0.dev1", "1.0.0 ; id"])
def test_another_version_is_rejected_with_an_example(version: str) -> None:
    with pytest.raises(ValueError, match="write it as"):
        semver(version)


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.1.0", "new\n"), ("1.1.0rc2", "new\n"), ("1.0.0", "old\n"), ("1.2.0", "next\n"), ("1.2.0rc1", "next\n")],
)
def test_the_notes_of_a_release_are_its_entry_in_the_changelog(tmp_path: Path, version: str, expected: str) -> None:
    text = "# Changelog\n\n## Unreleased\n\nnext\n\n## 1.1.0 - 2026-12-01\n\nnew\n\n## [1.0.0]\n\nold\n"
    (tmp_path / "CHANGELOG.md").write_text(text)
    assert expected == notes(Source(tmp_path, version, 0))


def test_a_bill_of_materials_lists_each_entry_of_the_lock_with_its_hashes() -> None:
    lock = (ROOT / "hack" / "image" / "requirements.lock").read_text()
    found = sbom.components(lock)
    assert re.findall(r"^(\S+)==", lock, re.MULTILINE) == [each["name"] for each in found]
    assert lock.count("--hash=sha256:") == sum(len(each["externalReferences"][0]["hashes"]) for each in found)


@pytest.mark.slow
def test_the_plugin_has_no_sandbox_and_no_object_storage() -> None:
    rooms = {path.parts[0] for path in plugin.modules_of_plugin()}
    assert rooms.isdisjoint({"sandbox", "rehearsal", "simulate", "backup_manager", "scheduler", "discovery", "library"})
    assert "cli" in rooms


def test_both_images_carry_labels_with_version_commit_and_licence() -> None:
    stages = re.split(r"^FROM ", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    titles = [re.findall(r'image\.title="([^"]+)"', stage) for stage in stages]
    assert sorted(deployment.TARGETS) == sorted(title for found in titles for title in found)
    for stage in (stage for stage, found in zip(stages, titles, strict=True) if found):
        assert 'image.version="${VERSION}"' in stage
        assert 'image.revision="${REVISION}"' in stage
        assert 'image.licenses="Apache-2.0"' in stage


def test_the_values_that_the_charts_readme_names_exist() -> None:
    directory = ROOT / "charts" / "tidb-operator"
    values = yaml.safe_load((directory / "values.yaml").read_text())
    named = re.findall(r"^\| `([\w.]+)` \|", (directory / "README.md").read_text(), re.MULTILINE)
    assert len(named) > 3
    for name in named:
        found = values
        for part in name.split("."):
            assert part in found, name
            found = found[part]


@pytest.mark.slow
@pytest.mark.thorough
def test_a_release_has_every_artefact_and_its_checksum(dist: Path) -> None:
    wanted = {
        "NOTES.md",
        "SHA256SUMS",
        "controllerkit-1.0.0rc1-py3-none-any.whl",
        "controllerkit-1.0.0rc1.tar.gz",
        "kubectl-tidb",
        "kubectl-tidb-1.0.0-rc.1.tar.gz",
        "kubectl-tidb-1.0.0rc1.cdx.json",
        "tidb-operator-py-1.0.0rc1.cdx.json",
        "tidb-operator-py-backup-manager-1.0.0rc1.cdx.json",
        "tidb.krew.yaml",
        "tidb_operator_py-1.0.0rc1-py3-none-any.whl",
        "tidb_operator_py-1.0.0rc1.tar.gz",
        *(["tidb-operator-1.0.0-rc.1.tgz"] if deployment.helm() else []),
    }
    assert wanted == {path.name for path in dist.iterdir()}
    lines = (line.split("  ") for line in (dist / "SHA256SUMS").read_text().splitlines())
    sums = {name: digest for digest, name in lines}
    assert wanted - {"SHA256SUMS"} == set(sums)
    assert {name: _digest(dist / name) for name in sums} == sums
    for path in dist.glob("*.cdx.json"):
        bill = json.loads(path.read_text())
        assert ("CycloneDX", VERSION) == (bill["bomFormat"], bill["metadata"]["component"]["version"])


def _missing_from_the_plugin() -> Iterator[tuple[str, ...]]:
    """The modules of the plugin that import a distribution that its file does not hold, with its names."""
    lock = (ROOT / "hack" / "image" / "plugin.lock").read_text()
    held = set(re.findall(r"^(\S+)==", lock, re.MULTILINE))
    distributions = packages_distributions()
    for path in plugin.modules_of_plugin():
        for _, imported in imports_of(ast.parse((ROOT / path).read_text())):
            names = {name.lower().replace("_", "-") for name in distributions.get(imported.partition(".")[0], ())}
            if names and not names & {*held, "tidb-operator-py"}:
                yield path.as_posix(), *names


def test_only_the_webhook_that_the_plugin_never_serves_imports_more_than_its_file_holds() -> None:
    assert {("controller_manager/admission.py", "cryptography")} == set(_missing_from_the_plugin())


@pytest.mark.slow
@pytest.mark.thorough
def test_the_plugin_runs_from_its_file_without_any_package(dist: Path, tmp_path: Path) -> None:
    file = str(dist / "kubectl-tidb")
    python = [sys.executable, "-I", "-S"]  # without this environment's packages
    before = _cpu()
    assert f"{VERSION}\n" == run([*python, file, "--version"], tmp_path)
    assert _cpu() - before < MOST_CPU
    assert not (tmp_path / ".cache").exists()
    for command in ("status", "doctor", "diff", "restart", "drain", "logs", "pause", "resume", "certs"):
        assert f"usage: kubectl tidb {command}" in run([*python, file, command, "--help"], tmp_path)
    (unpacked,) = (tmp_path / ".cache" / "kubectl-tidb").iterdir()
    assert not (unpacked / "kubernetes").exists()
    run([*python, file, "completion", "bash"], tmp_path)


@pytest.mark.slow
@pytest.mark.thorough
def test_krew_installs_the_archive_that_the_manifest_names(dist: Path) -> None:
    manifest = yaml.safe_load((dist / "tidb.krew.yaml").read_text())
    assert "v1.0.0-rc.1" == manifest["spec"]["version"]
    platforms = {tuple(each["selector"]["matchLabels"].values()) for each in manifest["spec"]["platforms"]}
    assert {(system, arch) for system in ("linux", "darwin") for arch in ("amd64", "arm64")} == platforms
    for each in manifest["spec"]["platforms"]:
        archive = dist / each["uri"]
        assert _digest(archive) == each["sha256"]
        with tarfile.open(archive) as content:
            assert {"kubectl-tidb", "LICENSE"} == set(content.getnames())
            assert content.getmember(each["bin"]).mode & 0o111


@pytest.mark.slow
@pytest.mark.thorough
def test_the_operators_wheel_installs_and_starts(dist: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "site")
    wheel = str(dist / f"tidb_operator_py-{VERSION}-py3-none-any.whl")
    run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, wheel], tmp_path)
    environ = {"PYTHONPATH": target}
    for program in ("controller_manager", "discovery", "scheduler"):
        assert VERSION in run([sys.executable, "-P", "-m", program, "--version"], tmp_path, environ)
    page = tmp_path / "site" / "cli" / "tidb" / "ui"
    assert {"base.html", "page.css", "page.js"} <= {each.name for each in page.rglob("*")}
    with tarfile.open(dist / f"tidb_operator_py-{VERSION}.tar.gz") as source:
        assert f"tidb_operator_py-{VERSION}/LICENSE" in source.getnames()


@pytest.mark.slow
@pytest.mark.thorough
def test_the_chart_renders_from_its_archive_with_the_images_of_the_release(dist: Path, tmp_path: Path) -> None:
    helm = deployment.helm()
    if helm is None:
        pytest.skip("Helm was not built: make helm")
    archive = dist / "tidb-operator-1.0.0-rc.1.tgz"
    with tarfile.open(archive) as content:
        assert {"tidb-operator/README.md", "tidb-operator/LICENSE"} < set(content.getnames())
    rendered = run([helm, "template", "tidb-operator", str(archive), "--namespace", "tidb-admin"], tmp_path)
    images = {line.split()[-1].strip('"') for line in rendered.splitlines() if line.strip().startswith("image:")}
    assert {"tidb-operator-py:1.0.0-rc.1"} == images
    assert "tidb-operator-py-backup-manager:1.0.0-rc.1" in rendered
    assert "version: 1.0.0-rc.1" in run([helm, "show", "chart", str(archive)], tmp_path)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_directory_with_other_files_is_kept(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ValueError, match="no earlier release"):
        empty(tmp_path)
    assert ["thesis.txt"] == [each.name for each in tmp_path.iterdir()]


def test_an_earlier_release_is_removed(tmp_path: Path) -> None:
    (tmp_path / "SHA256SUMS").write_text("")
    (tmp_path / "old.whl").write_text("")
    empty(tmp_path)
    assert [] == list(tmp_path.iterdir())
