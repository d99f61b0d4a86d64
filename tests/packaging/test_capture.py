"""The picture in the README is drawn from a real run, and shows nothing that a run does not print."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "run.svg"


def shown(picture: Path) -> set[str]:
    """The states that a picture shows: words before a colon."""
    texts = ElementTree.fromstring(picture.read_text(encoding="utf-8")).iter("{http://www.w3.org/2000/svg}text")
    return {text.text for text in texts if text.text and re.fullmatch(r"[A-Z]\w+", text.text)}


def test_the_picture_is_in_the_readme_and_loads_nothing_from_elsewhere() -> None:
    assert "](docs/run.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert not re.search(r"@font-face|url\(.?http|href=", PICTURE.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_script_draws_what_a_run_prints(tmp_path: Path) -> None:
    drawn = tmp_path / "run.svg"
    subprocess.run([sys.executable, "hack/capture.py", str(drawn)], cwd=ROOT, check=True, timeout=110)
    # a step that was over before anybody looked may be missing in one of them
    assert {"Creating", "WaitingForPD", "WaitingForTiKV", "Done", "Ready"} <= shown(drawn) & shown(PICTURE)
