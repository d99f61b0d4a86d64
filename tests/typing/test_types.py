"""What the type checker refuses: the ways to destroy without evidence (design.md 3.6)."""

import re
import sys
from pathlib import Path
from subprocess import run

import pytest

ROOT = Path(__file__).parents[2]
PLAIN_VALUES = Path(__file__).with_name("plain_values.py")
IGNORED = re.compile(r"  # type: ignore\[(.*)]$", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.rule("F5")
def test_mypy_refuses_to_destroy_with_plain_values(tmp_path: Path) -> None:
    text = PLAIN_VALUES.read_text()
    expected = [(number, code[1]) for number, line in enumerate(text.splitlines(), 1) if (code := IGNORED.search(line))]
    snippet = tmp_path / "snippet.py"
    snippet.write_text(IGNORED.sub("", text))
    command = [sys.executable, "-m", "mypy", "--no-error-summary", str(snippet)]
    answer = run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(r"^\S+?:(\d+): error: .*\[(.*)]$", answer.stdout, re.MULTILINE)
    assert expected == [(int(number), refused) for number, refused in found], answer.stdout + answer.stderr
