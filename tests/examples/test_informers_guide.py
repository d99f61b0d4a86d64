"""docs/informers.md runs against the library as it is installed."""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from library.build import PACKAGE, build, find, place_of

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "informers.md"
CONTROLLER = ROOT / "examples" / "sample_controller" / "controller.py"
_FENCE = re.compile(r'^```(\w*)(?: title="([\w.]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory on the path of imports with the library and the files of the guide in it, as it is installed."""
    directory = tmp_path_factory.mktemp("library")
    build(directory)
    metadata = directory / f"{PACKAGE}-0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 0\n")
    for file, text in blocks():
        if file:
            directory.joinpath(file).write_text(text)
    sys.path.insert(0, str(directory))
    yield directory
    sys.path.remove(str(directory))
    for name in [name for name in sys.modules if name.split(".")[0] in (PACKAGE, "controller", "test_controller")]:
        del sys.modules[name]


def blocks() -> Iterator[tuple[str, str]]:
    """The blocks of Python: the file that each belongs to, if any, and its text, with the line numbers of the guide."""
    text = GUIDE.read_text()
    for block in _FENCE.finditer(text):
        if block[1] == "python":
            yield block[2] or "", "\n" * text.count("\n", 0, block.start(3)) + block[3]


@pytest.mark.slow
@pytest.mark.usefixtures("library")
def test_every_block_of_the_guide_runs() -> None:
    names: dict[str, Any] = {"__name__": "guide"}
    try:
        for file, text in blocks():
            if not file:
                exec(compile(text, str(GUIDE), "exec"), names)
    finally:
        for name in ("stop", "end"):
            if name in names:
                names[name].set()
        if isinstance(started := names.get("running"), ExitStack):
            started.close()
    assert "washed" in names


@pytest.mark.slow
def test_the_test_of_the_guides_controller_passes(library: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile((library / "test_controller.py").read_text(), "test_controller.py", "exec"), names)
    tests = [each for name, each in names.items() if name.startswith("test_")]
    assert 1 == len(tests)
    tests[0]()


def test_the_guides_controller_is_the_sample_controller() -> None:
    def name_in_library(match: re.Match[str]) -> str:
        return f"from {PACKAGE}.{place_of(match[1])} import" if find(match[1]) else match[0]

    sample = re.sub(r"^from ([\w.]+) import", name_in_library, CONTROLLER.read_text(), flags=re.MULTILINE)
    assert sample == dict(blocks())["controller.py"].lstrip("\n")


def test_every_block_of_the_guide_that_looks_like_code_is_run() -> None:
    install, picture, *others = [block[1] for block in _FENCE.finditer(GUIDE.read_text())]
    assert ("sh", "", {"python"}) == (install, picture, set(others))
