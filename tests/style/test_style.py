"""The linter of prose: its findings and its exceptions; and the samples of prose."""

import re
from pathlib import Path

import pytest

from tests.style import rules, sample, texts
from tests.style.texts import ROOT


def found(path: str, content: str) -> list[str]:
    """The findings in a file of that content."""
    return [each.what.partition(":")[0] for each in rules.findings(path, list(texts.of_file(path, content)))]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('"""Nobody is told."""\n', ["'nobody'", "'told'"]),
        ('X = 1\n"""What goes on."""\n', ["'goes on'"]),
        ("x = 1  # the name is\n# that of a pod\n", ["'that of'"]),
        ("def test_a_user_is_told() -> None: ...\n", ["'told'"]),
        ('"""As `member.nowhere` says."""\n', ["member.nowhere does not exist"]),
        ('"""See issue 14."""\n', ["'issue 14'"]),
        (f'"""A sentence {"of many words " * 14}."""\n', ["a sentence of 44 words; split it"]),
        ('"""A table.\n' + "    name    a few words and more\n" * 9 + '"""\n', []),
        ('"""A table.\n' + "| name | a few words and more |\n" * 9 + '"""\n', []),
        ('"""A tree.\n' + "├── a few words and more\n" * 9 + '"""\n', []),
        ('text = "nobody"\n', []),
        ('"""Use `nobody` as the user; see `kube.apply` and pingcap/tidb#70907."""\n', []),
    ],
)
def test_finds_violations_in_python(content: str, expected: list[str]) -> None:
    assert expected == found("tests/style/test_made_up.py", content)


@pytest.mark.parametrize(
    ("path", "expected"),
    [("member/made_up.py", ["'told'", "'nobody'"]), ("tests/style/test_made_up.py", [])],
)
def test_finds_violations_in_messages_of_the_product(path: str, expected: list[str]) -> None:
    assert expected == found(path, 'def f(): return Waiting("nobody", f"{pod} was told by nobody", "told\\n nobody")\n')


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("# A heading of ours\n", ["'of ours'"]),
        ("| a | told |\n|---|---|\n", ["'told'"]),
        (
            "See [there](nowhere.md), [here](style.md#style), [or](style.md#nothing).\n",
            ["dead link nowhere.md", "dead anchor style.md#nothing"],
        ),
        ("```\nnobody\n```\n<!-- nobody -->\n`nobody` [x](https://example.com/told)\n", []),
    ],
)
def test_finds_violations_in_documents(content: str, expected: list[str]) -> None:
    assert expected == found("docs/made-up.md", content)


def test_a_folder_without_a_package_hides_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("member/__init__.py", "member/made_up.py", "member/made_up/__pycache__/parts.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(rules, "ROOT", tmp_path)
    monkeypatch.setattr(rules, "_rooms", lambda: {"member"})
    assert [] == found("tests/style/test_made_up.py", '"""As `member.made_up` says."""\n')
    assert ["member.made_down does not exist"] == found("tests/style/test_made_up.py", '"""As `member.made_down`."""\n')


def test_a_sample_is_the_same_for_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    drawn = [(sample.main(["seed"]), capsys.readouterr().out) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert 2 * sample.SIZE == len(re.findall(r"^ ?\d+ \S+:\d+ \[", drawn[0][1], re.MULTILINE))


def test_a_commit_subject_names_its_part_and_is_short() -> None:
    assert [] == list(rules.in_subject("member/pd: keep voters while PD is silent"))
    assert 3 == len(list(rules.in_subject(f"Fix what somebody broke {'x' * 60}")))


def test_the_documents_have_at_most_70_000_words() -> None:
    words = {path: len(path.read_text(encoding="utf-8").split()) for path in (ROOT / "docs").rglob("*.md")}
    assert sum(words.values()) <= 70_000, sorted(words.items(), key=lambda each: -each[1])[:10]


def test_the_first_page_of_differences_from_v1_6_has_at_most_25_rows() -> None:
    lines = (ROOT / "docs" / "compat.md").read_text(encoding="utf-8").splitlines()
    _head, _rule, *rows = [line for line in lines if line.startswith("|")]
    assert len(rows) <= 25
