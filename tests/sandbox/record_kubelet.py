"""Records a real kubelet's statuses: `python -m tests.sandbox.record_kubelet KUBELET`.

KUBELET is the program in hack/controlplane/kubernetes/kubelet: build it there with `go build -o KUBELET ./kubelet`. It
runs on the control plane of `make controlplane`, without containers and without privileges.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.controlplane.processes import BINARIES, ControlPlane
from tests.sandbox.kubelet_pods import DELETED, DELETED_AT, END, MADE_AT, SECRET, Told, pods

RECORDING = Path(__file__).parent / "recorded_kubelet.json"
_NODE = "node"
_PATIENCE = 60.0


def _record(kubelet: str, directory: Path) -> dict[str, Told]:
    """The record of each pod, by name."""
    place = ControlPlane(directory)
    place.start()
    environment = {**os.environ, "KUBECONFIG": str(place.kubeconfig())}

    def kubectl(*arguments: str, given: str = "") -> str:
        command = [str(BINARIES / "kubectl"), *arguments]
        return subprocess.run(command, input=given, env=environment, capture_output=True, text=True, check=False).stdout

    with (directory / "kubelet.log").open("w") as log:
        process = subprocess.Popen([kubelet, "--node", _NODE], env=environment, stdout=log, stderr=log)
    try:
        _await(lambda: "True" in kubectl("get", "node", _NODE, "--output", _READY))
        _await(lambda: kubectl("get", "serviceaccount", "default"))
        watched = directory / "watched.json"
        with watched.open("w") as output:
            watch = subprocess.Popen([str(BINARIES / "kubectl"), *_WATCH], env=environment, stdout=output)
        began = time.monotonic()  # noqa: TID251  (other processes are recorded)
        for pod in pods(_NODE):
            kubectl("create", "--filename", "-", given=json.dumps(pod))
        _pause_until(began + DELETED_AT)
        kubectl("delete", "pod", "--wait=false", DELETED)
        _pause_until(began + MADE_AT)
        kubectl("create", "secret", "generic", SECRET, "--from-literal=k=v")
        _pause_until(began + END)
        watch.terminate()
        watch.wait()
        return _told(watched.read_text())
    finally:
        process.terminate()
        process.wait()
        place.stop()


_READY = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
_WATCH = ("get", "pods", "--watch", "--output-watch-events", "--output", "json")


def _await(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + _PATIENCE  # noqa: TID251
    while not condition():
        if time.monotonic() > deadline:  # noqa: TID251
            raise RuntimeError("the kubelet does not become Ready")
        time.sleep(0.3)  # noqa: TID251


def _pause_until(moment: float) -> None:
    time.sleep(max(moment - time.monotonic(), 0.0))  # noqa: TID251


def _told(text: str) -> dict[str, Told]:
    found: dict[str, Told] = {}
    for event in _documents(text):
        pod = event["object"]
        told = found.setdefault(pod["metadata"]["name"], Told())
        told.end() if event["type"] == "DELETED" else told.add(pod)
    return found


def _documents(text: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        document, at = decoder.raw_decode(text, at)
        yield document


def main() -> int:
    """Record. Raises what goes wrong."""
    with tempfile.TemporaryDirectory() as directory:
        told = _record(sys.argv[1], Path(directory))
    parts = {name: each.parts for name, each in told.items()}
    RECORDING.write_text(json.dumps(parts, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
