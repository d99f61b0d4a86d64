"""docs/informers.md is run, and the tests that it names exist."""

import re
from pathlib import Path
from typing import Any

import pytest

from ports.stopping import Stop
from sandbox.world import World
from tests.e2e.waiting import eventually

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "informers.md"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_block_of_the_guide_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = GUIDE.read_text()
    names: dict[str, Any] = {"__name__": "guide", "eventually": eventually}
    world = World(nodes=[])
    try:
        world.start()
        monkeypatch.setenv("KUBECONFIG", str(world.write_kubeconfig(tmp_path)))
        for block in _FENCE.finditer(text):
            if block[1] == "python":
                # errors then name the guide's own line
                line = text.count("\n", 0, block.start(2))
                exec(compile("\n" * line + block[2], str(GUIDE), "exec"), names)
    finally:
        for stop in [each for each in names.values() if isinstance(each, Stop)]:
            stop.set()
        if "connection" in names:
            names["connection"].transport.close()
        world.stop()


def test_nothing_in_the_guide_looks_like_code_and_is_not_run() -> None:
    picture, *blocks = [block[1] for block in _FENCE.finditer(GUIDE.read_text())]
    assert ("", {"python"}) == (picture, set(blocks))


def test_every_lack_of_the_other_informer_is_answered_by_tests_that_exist() -> None:
    tests = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    defined = {name for text in tests for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    lacks = GUIDE.read_text().partition("\n## What the informer of the `kubernetes` package lacks\n")[2]
    answers = [set(re.findall(r"`(test_\w+)`", row)) for row in lacks.splitlines() if row.startswith("|")][2:]
    assert 10 == len(answers)
    assert [] == [names for names in answers if not names or names - defined]
