"""The links and commands of the documents work (docs/)."""

import re
from pathlib import Path

import pytest

from tests.e2e import plugins, worlds
from tests.e2e.guides import KUBECTL, Shell, anchor, commands, contains
from tests.e2e.operators import ROOT

DOCS = ROOT / "docs"
TYPED = ("install.md", "security.md", "lost-quorum.md", "troubleshooting.md")

_DOCUMENTS = [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")]
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_BLOCK = re.compile(r"^ *```console\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def test_every_link_leads_somewhere() -> None:
    links = [(each, target) for each in _DOCUMENTS for target in _LINK.findall(each.read_text(encoding="utf-8"))]
    assert [] == [(each.name, target) for each, target in links if not _leads_somewhere(each, target)]


def _leads_somewhere(document: Path, target: str) -> bool:
    if "://" in target:
        return True
    path, _, heading = target.partition("#")
    file = document.parent / path if path else document
    return file.exists() and (not heading or heading in _anchors(file))


def _anchors(file: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {anchor(each) for each in headings}


def test_the_entry_page_names_every_document() -> None:
    linked = {target.partition("#")[0] for target in _LINK.findall((DOCS / "README.md").read_text(encoding="utf-8"))}
    written = {path.name for path in DOCS.glob("*.md")} | {f"{path.name}/" for path in DOCS.iterdir() if path.is_dir()}
    named = {target.partition("/")[0] + ("/" if "/" in target else "") for target in linked}
    assert set() == written - named - {"README.md"}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", TYPED)
def test_the_commands_of_a_document_work(name: str, tmp_path: Path) -> None:
    """Compare a command's output with the document if that shows any; else the command must succeed."""
    if not KUBECTL.exists():
        pytest.skip("kubectl was not built: make controlplane")
    text = (DOCS / name).read_text(encoding="utf-8")
    with worlds.sandbox(tmp_path, installed=name != "install.md") as place:
        shell = Shell(place, ROOT)
        shell.environment = plugins.with_path(shell.environment, plugins.install(tmp_path / "bin"))
        if name != "install.md":
            shell.run("kubectl apply -f manifests/operator/deployment.yaml -f manifests/samples/basic.yaml")
        for block in _BLOCK.finditer(text):
            where = f"{name}:{text.count(chr(10), 0, block.start()) + 1}"
            for command, expected in commands(re.sub(r"^ +", "", block[1], flags=re.MULTILINE)):
                done = shell.complete(command)
                assert 0 == done.returncode, f"{where} {command}\n{done.stdout}"
                assert contains(done.stdout, expected), f"{where} {command}\n{done.stdout}"
