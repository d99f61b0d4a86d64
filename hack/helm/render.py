"""`python hack/helm/render.py`: render the plain manifests of the operator and the scheduler from the chart.

With `--check` nothing is written, and the exit code says whether they are as the chart has them. Needs `make helm`.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HELM = ROOT / "hack" / "helm" / "bin" / "helm"
CHART = ROOT / "charts" / "tidb-operator"
MANIFESTS = ROOT / "manifests"

_RELEASE, _NAMESPACE = "tidb-operator", "tidb-admin"
_KUBERNETES = "v1.33.4"
"""The release of kube-scheduler in the plain manifests."""

_HEAD = "# Rendered from charts/tidb-operator by `make manifests`: change it there.\n"

_OWN_NAMESPACE = f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: {_NAMESPACE}
  labels: # where no TidbCluster runs beside the operator, enforce it as well (docs/security.md)
    pod-security.kubernetes.io/audit: restricted
    pod-security.kubernetes.io/warn: restricted
"""
"""The differences of `helm install --create-namespace`."""

_SOURCE = re.compile(r"# Source: tidb-operator/templates/(?P<template>\S+)\n(?P<text>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One file: the templates of its objects, its header, and the values for rendering it."""

    templates: tuple[str, ...]
    values: tuple[str, ...] = ()
    before: str = ""


FILES: Mapping[str, Manifest] = {
    "operator/deployment.yaml": Manifest(
        ("controller-manager-service.yaml", "controller-manager-deployment.yaml"), before=_OWN_NAMESPACE
    ),
    "operator/rbac-cluster.yaml": Manifest(("controller-manager-rbac.yaml",)),
    "operator/rbac-namespaced.yaml": Manifest(("controller-manager-rbac.yaml",), ("clusterScoped=false",)),
    "operator/rbac-cluster-permissions.yaml": Manifest(
        ("controller-manager-cluster-permissions.yaml",), ("clusterScoped=false",)
    ),
    "operator/network-policy.yaml": Manifest(("network-policy.yaml",), ("networkPolicy.create=true",)),
    "operator/flow-control.yaml": Manifest(("flow-control.yaml",), ("flowControl.create=true",)),
    "scheduler/deployment.yaml": Manifest(("scheduler-deployment.yaml",), ("scheduler.create=true",)),
    "scheduler/rbac.yaml": Manifest(("scheduler-rbac.yaml",), ("scheduler.create=true",)),
}


def render(manifest: Manifest) -> str:
    """The text of a file. Raises CalledProcessError."""
    command = [
        str(HELM),
        "template",
        _RELEASE,
        str(CHART),
        f"--namespace={_NAMESPACE}",
        f"--kube-version={_KUBERNETES}",
    ]
    for value in manifest.values:
        command += ["--set", value]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)  # noqa: S603  (our own)
    documents = [manifest.before] if manifest.before else []
    for document in re.split(r"^---\n", done.stdout, flags=re.MULTILINE):
        source = _SOURCE.fullmatch(document)
        if source and source["template"] in manifest.templates:
            documents.append(source["text"].rstrip() + "\n")
    return _HEAD + "---\n".join(documents)


def main(arguments: Sequence[str]) -> int:
    """Write the files, or with `--check` compare them; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python hack/helm/render.py", description="Render the plain manifests from the chart."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file is not up to date")
    check: bool = parser.parse_args(arguments).check
    if not HELM.exists():
        sys.stderr.write(f"{HELM} is missing: run `make helm`\n")
        return 1
    stale = []
    for name, manifest in FILES.items():
        path, text = MANIFESTS / name, render(manifest)
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    if stale:
        sys.stderr.write(f"{MANIFESTS}: not as the chart has them: {', '.join(stale)}; run `make manifests`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
