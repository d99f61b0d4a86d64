"""Everything that documents name exists: files, targets of make, flags, annotations, metrics, fields, chart values."""

import re
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import yaml

from apis.crd import KINDS, definition
from kube.objects import Json

ROOT = Path(__file__).resolve().parents[1]

_OF_OTHERS = ("CHANGELOG.md", "docs/rules/")
"""Documents that may name removed or upstream things."""

_FOREIGN_FLAGS = frozenset({"atomic", "build-arg", "cascade", "reset-then-reuse-values", "reuse-values", "skip-crds"})
"""The names of kubectl, Helm and Docker."""

_FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")


@cache
def _files(*endings: str) -> Sequence[str]:
    """What is in the repository."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if name.endswith(endings) and (ROOT / name).exists()]


@cache
def _source() -> str:
    """The text of all code, manifests and templates, tests aside."""
    names = [name for name in _files(".py", ".yaml", ".json", ".tpl", ".sh") if not name.startswith("tests/")]
    return "\n".join((ROOT / name).read_text(encoding="utf-8") for name in names)


@cache
def _code() -> Sequence[tuple[str, str]]:
    """The texts between backquotes in the lines of documents, each with its document."""
    documents = [name for name in _files(".md") if not name.startswith(_OF_OTHERS)]
    texts = ((name, _FENCED.sub("", (ROOT / name).read_text(encoding="utf-8"))) for name in documents)
    return [(code, name) for name, text in texts for code in _CODE.findall(text)]


def _unknown(pattern: str, is_known: Callable[[str], bool]) -> set[tuple[str, str]]:
    """Names that are not known, each with a document that has it. The pattern has one group."""
    named = {(name, document) for code, document in _code() for name in re.findall(pattern, code)}
    assert named, pattern
    return {each for each in named if not is_known(each[0])}


def test_files() -> None:
    rooms = {name.partition("/")[0] for name in _files("") if "/" in name}
    pattern = rf"(?<![\w./-])((?:{'|'.join(map(re.escape, sorted(rooms)))})/[\w./*-]+\.(?:py|md|sh|yaml|json|toml|svg))"
    beside_tests = {name.removeprefix("tests/") for name in _files(".py")}  # as docs/fields.md names them
    assert set() == _unknown(pattern, lambda name: name in beside_tests or bool(list(ROOT.glob(name))))


def test_targets_of_make() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set() == _unknown(r"\bmake ([a-z-]+)", targets.__contains__)


def test_flags() -> None:
    taken = set(re.findall(r'"-{0,2}([a-z][a-z0-9-]+)"', _source())) | _FOREIGN_FLAGS
    failover = re.compile(r"(pd|tikv|tidb|tiflash|dm-master|dm-worker)-failover-period")
    assert set() == _unknown(r"^--?([a-z][a-z0-9-]+)", lambda name: name in taken or bool(failover.fullmatch(name)))


def test_annotations_and_labels() -> None:
    pattern = r"((?:tidb\.)?pingcap\.com/[a-z][\w-]*\w)"
    assert set() == _unknown(pattern, lambda name: name in _source())


def test_metrics() -> None:
    served = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")  # generated
    pattern = r"\b((?:tidb_(?:operator|scheduler)|workqueue|rest_client|controller_runtime)_\w+)"
    assert set() == _unknown(pattern, lambda name: name in served or f'"{name.removesuffix("_total")}' in _source())


def test_values_of_the_chart() -> None:
    values = yaml.safe_load((ROOT / "charts" / "tidb-operator" / "values.yaml").read_text(encoding="utf-8"))

    def has(path: str) -> bool:
        found = values
        for step in path.split("."):
            if not isinstance(found, dict) or step not in found:
                return False
            found = found[step]
        return True

    assert set() == _unknown(r"\b((?:controllerManager|networkPolicy|flowControl|scheduler)\.\w[\w.]*\w)", has)


def test_fields() -> None:
    schemas = [
        version["schema"]["openAPIV3Schema"] for kind in KINDS for version in definition(kind)["spec"]["versions"]
    ]
    foreign = {"spec.claimRef"}  # a PersistentVolume's

    def is_known(path: str) -> bool:
        steps = [step for step in re.sub(r"\[.*?\]", "", path).split(".") if step not in ("", "*")]
        return path in foreign or any(_has(schema, steps) for schema in schemas)

    assert set() == _unknown(r"(?<![\w.])((?:spec|status)\.[a-z]\w*(?:\.[\w*]+|\[\w*\])*)(?![\w-])", is_known)


def _has(schema: Json, steps: Sequence[str]) -> bool:
    """True if a field is part of a schema; what is beyond free-form trees is."""
    if not steps or schema.get("x-kubernetes-preserve-unknown-fields"):
        return True
    if schema.get("type") == "array":
        return _has(schema["items"], steps)
    fields = schema.get("properties", {})
    if steps[0] in fields:
        return _has(fields[steps[0]], steps[1:])
    others = schema.get("additionalProperties")
    return _has(others, steps[1:]) if isinstance(others, dict) else bool(others)
