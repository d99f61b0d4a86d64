"""The library for authors of controllers: its source, and its wheel in a separate environment."""

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from library import build as library
from tests.examples.test_informers_guide import blocks

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of the library."""
    directory = tmp_path_factory.mktemp("library")
    library.build(directory)
    return directory


def modules(source: Path) -> Iterator[str]:
    for path in sorted((source / library.PACKAGE).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        yield ".".join(parts).removesuffix(".__init__")


@pytest.mark.slow
def test_every_module_of_the_library_can_be_imported_alone(source: Path) -> None:
    names = list(modules(source))
    assert len(names) > 100
    code = f"import importlib; [importlib.import_module(name) for name in {names}]"
    # `-P` keeps this repository off the path: a name that was not rewritten would be found there
    done = run([sys.executable, "-P", "-W", "error", "-c", code], source, {"PYTHONPATH": str(source)})
    assert "" == done


@pytest.mark.slow
def test_the_library_declares_exactly_its_imports(source: Path) -> None:
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    assert ["PyYAML", "msgspec", "prometheus-client", "structlog", "urllib3"] == [
        each.partition(">")[0] for each in project["dependencies"]
    ]
    extras = {
        name: [each.partition(">")[0] for each in lines] for name, lines in project["optional-dependencies"].items()
    }
    assert {"testing": ["jsonpatch"], "auth-providers": ["kubernetes"]} == extras


@pytest.mark.slow
def test_the_library_is_typed_and_has_its_data(source: Path) -> None:
    package = source / library.PACKAGE
    assert (package / "py.typed").exists()
    assert {"kubernetes_types.json", "builtin_schemas.json", "builtin_protobuf.json"} == {
        path.name for path in package.rglob("*.json")
    }


@pytest.mark.parametrize("module", ["controllers.tidbcluster.kind", "dataplane.pd", "member.labels", "cli.main"])
def test_a_module_that_knows_tidb_fails_the_build(module: str) -> None:
    with pytest.raises(library.NotGenericError):
        library.collect([module])


@pytest.mark.parametrize(
    ("line", "rewritten"),
    [
        ("from kube.objects import Json", "from controllerkit.kube.objects import Json"),
        ("from kube import contests", "from controllerkit.kube import contests"),
        ("from member.outcome import Done", "from controllerkit.controllers.outcome import Done"),
        ("from apis.problem import Problem", "from controllerkit.models.problem import Problem"),
        (
            "from sandbox.apiserver import (\n    ApiServer,\n)",
            "from controllerkit.testing.apiserver import (\n    ApiServer,\n)",
        ),
        ("    from ports.clock import Clock", "    from controllerkit.ports.clock import Clock"),
        ("from msgspec import field", "from msgspec import field"),
        (
            '"""See `kube.objects.Object`, not kube.objects."""',
            '"""See `controllerkit.kube.objects.Object`, not kube.objects."""',
        ),
        (
            '"""In `controllers/tidbcluster/`, e.g. `spec.replicas`."""',
            '"""In `controllers/tidbcluster/`, e.g. `spec.replicas`."""',
        ),
    ],
)
def test_imports_and_dotted_names_are_rewritten_and_nothing_else(line: str, rewritten: str) -> None:
    text = f"if True:\n{line}\n" if line.startswith(" ") else f"{line}\n"
    module = library.Module("any", Path("any.py"), text, ast.parse(text))
    assert text.replace(line, rewritten) == library.rewritten(module)


@pytest.mark.slow
@pytest.mark.thorough
def test_the_guides_controller_and_its_test_run_next_to_a_folder_called_controllers(
    source: Path, tmp_path: Path
) -> None:
    wheels = str(tmp_path / "wheels")
    run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", wheels, str(source)], tmp_path)
    run([sys.executable, "-m", "venv", str(tmp_path / "venv")], tmp_path)
    python = str(tmp_path / "venv" / "bin" / "python")
    (wheel,) = Path(wheels).iterdir()
    run([python, "-m", "pip", "install", "-q", f"{wheel}[testing]", "pytest"], tmp_path)
    mine = tmp_path / "mine"
    for folder in ("controllers", "kube", "ports"):
        (mine / folder).mkdir(parents=True)
        (mine / folder / "__init__.py").write_text("raise AssertionError('the library must not import this')\n")
    for file, text in blocks():
        if file:
            (mine / file).write_text(text)
    assert "1 passed" in run([python, "-m", "pytest", "-q"], mine)
    assert "-leader-lease-duration" in run([python, "controller.py", "-help"], mine)


def run(command: list[str], directory: Path, environ: dict[str, str] | None = None) -> str:
    """The output of a command; its errors fail the test."""
    keep = {name: value for name, value in os.environ.items() if name.startswith("PIP_") or "proxy" in name.lower()}
    whole = {**keep, "HOME": str(directory), "PATH": os.environ["PATH"], **(environ or {})}
    done = subprocess.run(command, cwd=directory, env=whole, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
