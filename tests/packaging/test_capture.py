"""The pictures in the README are drawn from real runs, and show nothing that a run does not print."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs"


def shown(picture: Path) -> set[str]:
    """The states that a picture shows: words before a colon."""
    texts = ElementTree.fromstring(picture.read_text(encoding="utf-8")).iter("{http://www.w3.org/2000/svg}text")
    return {text.text for text in texts if text.text and re.fullmatch(r"[A-Z]\w+", text.text)}


@pytest.mark.parametrize("name", ["run.svg", "plan.svg"])
def test_the_pictures_are_in_the_readme_and_load_nothing_from_elsewhere(name: str) -> None:
    assert f"](docs/{name})" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert not re.search(r"@font-face|url\(.?http|href=", (PICTURES / name).read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_script_draws_what_the_commands_print(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "hack/capture.py", str(tmp_path)], cwd=ROOT, check=True, timeout=110)
    # a step that was over before anybody looked may be missing in one of them
    run = shown(tmp_path / "run.svg") & shown(PICTURES / "run.svg")
    assert {"Creating", "WaitingForPD", "WaitingForTiKV", "Done", "Ready"} <= run
    # a rehearsal has a clock of its own
    assert (tmp_path / "plan.svg").read_text("utf-8") == (PICTURES / "plan.svg").read_text("utf-8")
