"""A real API server takes the definitions in each way in which users install them."""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from apis.crd import DIRECTORY, KINDS
from tests.chart.helm import CHART, NAMESPACE, RELEASE, Helm
from tests.controlplane.processes import BINARIES, require_or_reason, running

pytestmark = [pytest.mark.slow, pytest.mark.controlplane]

_EVERY_KIND = sorted(f"{kind.plural}.pingcap.com" for kind in KINDS)


@pytest.fixture
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of the admin of an API server without definitions."""
    if reason := require_or_reason():
        pytest.skip(reason)
    with running(tmp_path_factory.mktemp("controlplane"), api_only=True) as control_plane:
        yield control_plane.kubeconfig()


def _kubectl(kubeconfig: Path, *arguments: str) -> str:
    command: Sequence[str] = (str(BINARIES / "kubectl"), "--kubeconfig", str(kubeconfig), *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, f"{' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _established(kubeconfig: Path) -> list[str]:
    """The definitions that are served."""
    _kubectl(kubeconfig, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
    return sorted(_kubectl(kubeconfig, "get", "crd", "-o", "jsonpath={.items[*].metadata.name}").split())


@pytest.mark.parametrize(
    "verb", [("create",), ("apply",), ("apply", "--server-side")], ids=["create", "apply", "server-side-apply"]
)
def test_kubectl_installs_and_replaces_the_definitions(kubeconfig: Path, verb: tuple[str, ...]) -> None:
    _kubectl(kubeconfig, *verb, "-f", str(DIRECTORY))
    assert _EVERY_KIND == _established(kubeconfig)
    _kubectl(kubeconfig, "replace", "-f", str(DIRECTORY))


def test_helm_installs_the_definitions(kubeconfig: Path, tmp_path: Path) -> None:
    helm = Helm(tmp_path, kubeconfig)
    helm.succeed("install", RELEASE, str(CHART), f"--namespace={NAMESPACE}", "--create-namespace")
    assert _EVERY_KIND == _established(kubeconfig)
    helm.succeed("uninstall", RELEASE, f"--namespace={NAMESPACE}")
