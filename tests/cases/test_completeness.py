"""Each file of the specification's cases has a test, so that a new file cannot stay unnoticed."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.apis.field_trees import shared_file
from tests.cases.test_hostile import PROGRAMS

HERE = Path(__file__).parent
LIBRARIES = frozenset({"informers/common.py", "informers/scripted.py"})
"""Files that the programs of the specification import."""


def files_of_tests() -> Iterator[str]:
    """The files that tests name in `of_case`, and the programs."""
    for module in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "of_case":
                yield ast.literal_eval(node.args[0])
    yield from (f"informers/{name}.py" for name in PROGRAMS)


def of_specification() -> set[str]:
    cases = shared_file("cases")
    files = (each for each in cases.rglob("*") if each.is_file() and each.suffix in (".yaml", ".yml", ".py", ".json"))
    return {str(each.relative_to(cases)) for each in files if "__pycache__" not in each.parts}


def test_each_file_of_the_specification_has_a_test() -> None:
    assert set() == of_specification() - set(files_of_tests()) - LIBRARIES


def test_each_tested_file_exists_in_the_specification() -> None:
    assert set() == {*files_of_tests(), *LIBRARIES} - of_specification()


def test_each_tested_manifest_has_an_input_of_its_own() -> None:
    missing = [each for each in files_of_tests() if each.endswith(".yaml") and not (HERE / "inputs" / each).is_file()]
    assert [] == missing
