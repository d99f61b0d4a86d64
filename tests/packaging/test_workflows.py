"""The workflows of GitHub: their steps are the Makefile's targets, and every action is pinned."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.plugin import PYTHONS

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").iterdir())

_MAKE = re.compile(r"\bmake (?:-\w+ )*([a-z][a-z-]*)")


def parsed(path: Path) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as True
    tree = yaml.safe_load(path.read_text("utf-8"))
    return {str(key): value for key, value in tree.items()}


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in parsed(path)["jobs"].values():
        yield from job["steps"]


def targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def made(path: Path) -> set[str]:
    return {target for step in steps(path) for target in _MAKE.findall(step.get("run", ""))}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_targets_that_exist(path: Path) -> None:
    assert made(path)
    assert set() == made(path) - targets()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_to_a_commit_and_names_its_version(path: Path) -> None:
    used = re.findall(r"^ +(?:- )?uses: (.*)$", path.read_text("utf-8"), re.MULTILINE)
    assert len(used) == sum("uses" in step for step in steps(path))
    assert [] == [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)]


def test_an_action_has_the_same_commit_in_all_workflows() -> None:
    used = {each for path in WORKFLOWS for each in re.findall(r"uses: (\S+)", path.read_text("utf-8"))}
    names = [each.partition("@")[0] for each in used]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_read_rights_unless_a_job_needs_more_and_keeps_no_token(path: Path) -> None:
    assert {"contents": "read"} == parsed(path)["permissions"]
    checkouts = [step for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]
    assert [] == [step for step in checkouts if step["with"]["persist-credentials"] is not False]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_script_contains_a_value_that_a_user_chooses(path: Path) -> None:
    """Such a value reaches a script by the environment, where the shell does not run it."""
    scripts = "\n".join(step["run"] for step in steps(path) if "run" in step)
    assert [] == re.findall(r"\$\{\{ *(?:inputs|github\.(?:event|head_ref|ref_name|actor))[^}]*\}\}", scripts)


def test_the_tests_run_on_every_python_that_the_plugin_supports() -> None:
    matrix = parsed(GITHUB / "workflows" / "tests.yaml")["jobs"]["tests"]["strategy"]["matrix"]
    assert list(PYTHONS) == matrix["python"]


def test_the_workflows_run_what_must_hold_before_a_change_lands() -> None:
    required = set(_MAKE.findall((ROOT / ".ci" / "run").read_text("utf-8")))
    assert len(required) > 5
    assert set() == required - {target for path in WORKFLOWS for target in made(path)}


def test_every_path_with_an_owner_exists() -> None:
    lines = [
        line.split() for line in (GITHUB / "CODEOWNERS").read_text("utf-8").splitlines() if not line.startswith("#")
    ]
    assert "*" == lines[0][0]
    assert [] == [path for path, *_ in lines[1:] if not (ROOT / path.strip("/")).exists()]
    assert [] == [path for path, *owners in lines if not owners]


def test_the_issue_forms_have_the_fields_that_github_requires() -> None:
    forms = [path for path in (GITHUB / "ISSUE_TEMPLATE").iterdir() if path.name != "config.yml"]
    assert len(forms) > 1
    for form in forms:
        tree = parsed(form)
        assert {"name", "description", "body"} <= set(tree)
        for part in tree["body"]:
            assert part["type"] in ("markdown", "textarea", "input", "dropdown")
            assert part["attributes"].get("value" if part["type"] == "markdown" else "label")
