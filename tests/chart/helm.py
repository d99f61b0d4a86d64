"""Helm as a user runs it, on our chart."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from kube.objects import Json

ROOT = Path(__file__).parents[2]
BINARY = ROOT / "hack" / "helm" / "bin" / "helm"
CHART = ROOT / "charts" / "tidb-operator"
RELEASE, NAMESPACE = "tidb-operator", "tidb-admin"

_CLEAN = ("KUBECONFIG", "KUBECONTEXT", "HTTP_PROXY", "http_proxy", "ALL_PROXY")


def built() -> str:
    """The path of Helm; skips where it was not built."""
    if not BINARY.exists() and os.environ.get("REQUIRE_EVERYTHING"):
        pytest.fail(f"{BINARY} is required here: run `make helm`")
    if not BINARY.exists():
        pytest.skip("no Helm: run `make helm`")
    return str(BINARY)


class Helm:
    """Helm with its own home, and with a cluster or none."""

    def __init__(self, home: Path, kubeconfig: Path | None = None) -> None:
        self._environ = {name: value for name, value in os.environ.items() if name not in _CLEAN}
        self._environ |= {f"HELM_{each}_HOME": str(home) for each in ("CACHE", "CONFIG", "DATA")}
        self._environ["KUBECONFIG"] = str(kubeconfig or os.devnull)
        self._binary = built()

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command that has ended."""
        return subprocess.run(
            [self._binary, *arguments], capture_output=True, text=True, timeout=110, check=False, env=self._environ
        )

    def succeed(self, *arguments: str) -> str:
        """The output of a command. Raises AssertionError with all output if it fails."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"helm {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def template(self, values: Json, *flags: str) -> list[Json]:
        """The objects of the chart for values."""
        text = self._render(values, *flags)
        assert text.returncode == 0, text.stderr
        return [each for each in yaml.safe_load_all(text.stdout) if each]

    def refusal(self, values: Json) -> str:
        """The message for refused values. Raises AssertionError if the chart accepts them."""
        done = self._render(values)
        assert done.returncode == 1, values
        return done.stderr.partition("Error: ")[2]

    def _render(self, values: Json, *flags: str) -> subprocess.CompletedProcess[str]:
        given = (f"--set-json={name}={json.dumps(value)}" for name, value in values.items())
        return self.run("template", RELEASE, str(CHART), f"--namespace={NAMESPACE}", *given, *flags)


def one(objects: list[Json], kind: str, name: str = "") -> Json:
    """The one object of a kind, and of a name if one is given."""
    (found,) = (each for each in objects if each["kind"] == kind and name in ("", each["metadata"]["name"]))
    return found


def arguments(objects: list[Json], name: str = "tidb-controller-manager") -> list[str]:
    """The arguments of the last container of a Deployment."""
    found: list[str] = one(objects, "Deployment", name)["spec"]["template"]["spec"]["containers"][-1]["args"]
    return found
