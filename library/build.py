"""Build the library for authors of controllers from the rooms of this repository that know nothing of TiDB.

    python -m library.build DIRECTORY
    python -m library.build --check     as `make lint` does: write nothing, and fail if the library would know TiDB

The rooms have generic names, such as `controllers`, which no environment could share with a user's own folders. In the
library all of them are below one package, `controllerkit`: the build rewrites each import and each dotted name in a
docstring, and nothing else. It takes the public modules and what they import; one that knows TiDB fails the build.
"""

import argparse
import ast
import configparser
import re
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PACKAGE = "controllerkit"

PLACES: Mapping[str, str] = {
    "ports": "ports",
    "workqueue": "workqueue",
    "kube": "kube",
    "informers": "informers",
    "controllers": "controllers",
    "controller_manager": "process",
    "apis": "models",
    "sandbox": "testing",
    "member.outcome": "controllers.outcome",
    "tests.informers.fake_source": "testing.fake_source",
    "library.kit": "kit",
    "library.testing": "testing.__init__",
    "library.product": "ports.product",
}
"""The places of rooms, and of single modules of other rooms, in the library. The longest matching name counts."""

REPLACED = frozenset({"ports.product"})
"""Modules of the operator that the library has another version of."""

PUBLIC_ROOMS = ("ports", "workqueue", "kube", "informers")
"""Rooms that belong to the library with all their modules."""

PUBLIC = (
    "library.kit",
    "library.product",
    "library.testing",
    "tests.informers.fake_source",
    "controllers.enqueueing",
    "controllers.own_write",
    "controllers.queues",
)
"""Further modules that users import; their imports follow."""

DOCSTRINGS: Mapping[str, str] = {
    "": "Kubernetes controllers in the shape of client-go. `kit` has all that most programs need.",
    "models": "Models of custom resources: decoding with errors that name the field, and unknown fields.",
    "process": "The process: flags, logs, leader election, health and metrics over HTTP, an orderly end.",
}
"""Docstrings for packages whose own docstring describes the operator."""

REQUIREMENTS = {"prometheus_client": "prometheus-client", "yaml": "PyYAML", "jsonpointer": "jsonpatch"}
"""The distribution of a module, where it has another name."""

_PRODUCT = re.compile(r"tidb|pingcap|tikv", re.IGNORECASE)

_CONSTANT_OF_TIDB = re.compile(r'^([A-Z_]+) = Resource\(\s*"(?:apps\.)?pingcap\.com"[^)]*\)\n', re.MULTILINE)
"""The custom resources of TiDB in `kube.resources`, which the library leaves out."""

_DOTTED_NAME = re.compile(r"(?<=`)([a-z_]+(?:\.[a-z_]+)+)(?=[.`])")


class NotGenericError(Exception):
    """Raised when a module of the library imports one that belongs to TiDB, or names TiDB itself."""


@dataclass(frozen=True, slots=True)
class Module:
    """A module of this repository: its name, its file, and its syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module


@cache
def find(name: str) -> Path | None:
    """The file of a module of this repository, None for one of the standard library or of a distribution."""
    parts = ROOT.joinpath(*name.split("."))
    return next((each for each in (parts.with_suffix(".py"), parts / "__init__.py") if each.is_file()), None)


def place_of(name: str) -> str | None:
    """The name of a module in the library, without the package; None where the library has no place for it.

    >>> place_of("apis.decoding")
    'models.decoding'
    """
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if (place := PLACES.get(".".join(parts[:length]))) is not None:
            rest = parts[length:]
            return ".".join([place.removesuffix(".__init__"), *rest])
    return None


def imports_of(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """Each imported module with its statement, e.g. `kube.contests` for `from kube import contests`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from ((node, name if find(name) else node.module) for name in modules)


def collect(public: Iterable[str]) -> dict[str, Module]:
    """The public modules, and all that they import of this repository. Raises NotGenericError."""
    found: dict[str, Module] = {}
    waiting = [(name, "") for name in public]
    while waiting:
        name, importer = waiting.pop()
        path = find(name)
        if path is None or name in found or name in REPLACED:
            continue
        if place_of(name) is None:
            raise NotGenericError(f"{importer} imports {name}, which is a part of the operator")
        text = _CONSTANT_OF_TIDB.sub("", path.read_text("utf-8"))
        found[name] = Module(name, path, text, ast.parse(text))
        require_generic(found[name])
        waiting += [(imported, name) for _, imported in imports_of(found[name].tree)]
    return found


def require_generic(module: Module) -> None:
    """Raise NotGenericError for a module that names TiDB in its code, or uses a resource of TiDB.

    Docstrings and comments may give TiDB as an example.
    """
    prose = {id(node.value) for node in ast.walk(module.tree) if isinstance(node, ast.Expr)}
    texts = [node for node in ast.walk(module.tree) if isinstance(node, ast.Constant) and id(node) not in prose]
    for node in texts:
        if isinstance(node.value, str) and _PRODUCT.search(node.value):
            raise NotGenericError(f"{module.path.relative_to(ROOT)}:{node.lineno} names the product: {node.value!r}")
    for alias in (node for node in ast.walk(module.tree) if isinstance(node, ast.alias)):
        if alias.name in _resources_of_tidb():
            raise NotGenericError(f"{module.path.relative_to(ROOT)}:{alias.lineno} uses {alias.name}")


@cache
def _resources_of_tidb() -> frozenset[str]:
    return frozenset(_CONSTANT_OF_TIDB.findall((ROOT / "kube" / "resources.py").read_text("utf-8")))


def rewritten(module: Module) -> str:
    """The text of a module with the names of the library."""
    lines = module.text.splitlines(keepends=True)
    for node, _ in imports_of(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module and find(node.module):
            _move(lines, node, node.module)
        elif isinstance(node, ast.Import):
            moved = [alias.name for alias in node.names if find(alias.name)]
            assert not moved, f"{module.path}:{node.lineno}: write `from … import`, so that {moved} can be moved"
    return _DOTTED_NAME.sub(lambda match: _named(match[1]), "".join(lines))


def _move(lines: list[str], node: ast.ImportFrom, source: str) -> None:
    new = place_of(source)
    for alias in node.names:
        inner = f"{source}.{alias.name}"
        assert not find(inner) or place_of(inner) == f"{new}.{alias.name}", f"import {inner} by its full name"
    line, start = lines[node.lineno - 1], node.col_offset
    lines[node.lineno - 1] = line[:start] + line[start:].replace(f"from {source} ", f"from {PACKAGE}.{new} ", 1)


def _named(dotted: str) -> str:
    """A dotted name of a docstring as the library has it."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        if find(name) and (place := place_of(name)) is not None:
            return ".".join([PACKAGE, place, *parts[length:]])
    return dotted


def external(modules: Collection[Module]) -> set[str]:
    """The top-level modules of other distributions that these import."""
    names = {name.partition(".")[0] for module in modules for _, name in imports_of(module.tree)}
    return {name for name in names if name not in sys.stdlib_module_names and not (ROOT / name).is_dir()}


def requirements(names: Collection[str], declared: Iterable[str]) -> list[str]:
    """The requirements of some modules, as the operator declares them."""
    wanted = {REQUIREMENTS.get(name, name).lower() for name in names}
    by_name = {re.split(r"[<>=~\[]", line)[0].lower(): line for line in declared}
    return sorted(by_name[name] for name in wanted)


def declared_metadata() -> tuple[str, str, list[str]]:
    """The version of this repository, the Pythons that it runs on, and its requirements (setup.cfg)."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = (line.strip() for line in config["options"]["install_requires"].splitlines())
    declared = [line for line in lines if line and not line.startswith("#")]
    return config["metadata"]["version"], config["options"]["python_requires"], declared


def project_file(modules: Mapping[str, Module]) -> str:
    """The pyproject.toml of the library."""
    version, python, declared = declared_metadata()
    in_tests = {name for name in modules if (place_of(name) or "").split(".")[0] == "testing"}
    at_work = external([module for name, module in modules.items() if name not in in_tests])
    for_tests = external([modules[name] for name in in_tests]) - at_work
    return f'''\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{PACKAGE}"
version = "{version}"
description = "Kubernetes controllers in the shape of client-go: informers, work queues, leader election, a kit"
readme = "README.md"
license = "Apache-2.0"
license-files = ["LICENSE"]
requires-python = "{python}"
dependencies = {_toml_list(requirements(at_work, declared))}

[project.optional-dependencies]
testing = {_toml_list(requirements(for_tests, declared))}
auth-providers = {_toml_list(requirements(["kubernetes"], declared))}

[tool.setuptools.packages.find]
include = ["{PACKAGE}*"]

[tool.setuptools.package-data]
"*" = ["py.typed", "*.json"]
'''


def _toml_list(items: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{item}"' for item in items) + "]"


def public() -> list[str]:
    """The modules that users import."""
    rooms = [f"{room}.{path.stem}" for room in PUBLIC_ROOMS for path in (ROOT / room).glob("*.py")]
    return [*PUBLIC, *(name.removesuffix(".__init__") for name in rooms)]


def build(directory: Path) -> None:
    """Write the source of the library into an empty directory. Raises NotGenericError."""
    modules = collect(public())
    for module in modules.values():
        place = PLACES.get(module.name) or place_of(module.name) or ""
        target = directory.joinpath(PACKAGE, *place.split("."))
        if module.path.name == "__init__.py" and target.name != "__init__":
            target /= "__init__"
        _write(target.with_suffix(".py"), rewritten(module))
        for data in module.path.parent.glob("*.json"):
            if data.name in module.text:
                shutil.copy(data, target.parent)
    for package in sorted({path.parent for path in (directory / PACKAGE).rglob("*.py")}):
        _complete(package, directory)
    _write(directory / "pyproject.toml", project_file(modules))
    shutil.copy(ROOT / "library" / "README.md", directory)
    shutil.copy(ROOT / "LICENSE", directory)


def _complete(package: Path, directory: Path) -> None:
    """Make a directory a typed package with a docstring."""
    name = ".".join(package.relative_to(directory / PACKAGE).parts)
    source = next((find(room) for room, place in PLACES.items() if place == name and "." not in room), None)
    init = package / "__init__.py"
    if name in DOCSTRINGS or not init.exists():
        text = source.read_text("utf-8") if source and name not in DOCSTRINGS else f'"""{DOCSTRINGS[name]}"""\n'
        _write(init, text)
    if package == directory / PACKAGE:
        (package / "py.typed").touch()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def main() -> int:
    """Build the source; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m library.build", description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?", help="an empty directory, or one that does not exist")
    parser.add_argument("--check", action="store_true", help="only check that no module of the library knows TiDB")
    given = parser.parse_args()
    if not given.check and given.directory is None:
        parser.error("name a directory, or --check")
    try:
        collect(public()) if given.check else build(given.directory)
    except NotGenericError as error:
        print(f"the library for authors of controllers must not know TiDB: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
