"""The inputs of a case: our own, and the file of the specification if it is beside the repository."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kube.objects import Json
from tests.apis.field_trees import shared_file
from tests.cases.case_world import CaseWorld

_OURS = Path(__file__).with_name("inputs")


@pytest.fixture
def path(request: pytest.FixtureRequest) -> Path:
    """The file of a case, by its source and its name; skips where the specification is absent."""
    source, name = request.param
    return _OURS / name if source == "ours" else shared_file("cases", *Path(name).parts)


@pytest.fixture
def documents(path: Path) -> list[Json]:
    """The documents of the file."""
    return [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]


@pytest.fixture
def world() -> Iterator[CaseWorld]:
    """A sandbox with the operator in it, both on a clock that is stepped."""
    made = CaseWorld()
    yield made
    made.stop()
