"""The commands of docs/operations.md run in order and show the documented output."""

import contextlib
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Thread

import pytest
import yaml

from kube.objects import Json
from kube.resources import PODS, STORAGE_CLASSES
from manifests import ADVANCED_STATEFUL_SET
from sandbox.controllers.volumes import standard_storage_class
from sandbox.dataplane.runtime import DataPlane
from sandbox.world import load_crds
from tests.e2e import operators, worlds
from tests.e2e.guides import KUBECTL, PATIENCE, Shell, anchor, commands, plain, section
from tests.e2e.operators import ROOT, Operator
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, sample

GUIDE = ROOT / "docs" / "operations.md"

_PART = re.compile(r"^```(console|text)\n(.*?)^```$|^<!-- (\S+) (crashes|runs) -->$", re.MULTILINE | re.DOTALL)
_COLUMNS = re.compile(r"\s{2,}")
_TIMINGS = replace(worlds.TIMINGS, peer_moves=2.0)
"""A store's data leave it slowly enough for a reader to see it: details are shown every 2 s."""
_FLAGS = ("--v=4", *(f"--{component}-failover-period=3s" for component in ("pd", "tikv", "tidb")))
"""The log then reports every wait."""
_BY_FEATURES = ("A pod in the middle", "Another storage class in place")
"""The sections for clusters of Advanced StatefulSets, and for volumes that their driver can change."""
_ELSEWHERE = (*_BY_FEATURES, "Monitor clusters")
"""The sections that need another Kubernetes than the others; for the last see test_openshift.py."""
_FEATURES = "--features=AdvancedStatefulSet=true,VolumeModifying=true"


def test_every_link_of_the_guide_leads_somewhere() -> None:
    text = GUIDE.read_text()
    headings = {anchor(each) for each in re.findall(r"^## (.+)$", text, re.MULTILINE)}
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, heading = target.partition("#")
        assert (GUIDE.parent / path).exists() if path else heading in headings, target


def test_every_block_of_the_guide_that_looks_like_code_is_run() -> None:
    fences = re.findall(r"^```(\w*)$", GUIDE.read_text(), re.MULTILINE)
    watch, *blocks = fences[::2]
    assert ("", {"console", "text"}) == (watch, set(blocks))


def test_every_step_of_the_guide_has_a_status_and_a_reason_in_columns() -> None:
    steps = [
        line for kind, block, *_ in _PART.findall(GUIDE.read_text()) if kind == "text" for line in block.splitlines()
    ]
    assert steps
    assert [] == [line for line in steps if len(_COLUMNS.split(line.strip())) != 2]


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_commands_of_the_guide_show_the_documented_output(tmp_path: Path) -> None:
    if not KUBECTL.exists():
        pytest.skip("kubectl was not built: make controlplane")
    with (
        worlds.sandbox(tmp_path, timings=_TIMINGS) as place,
        operators.running(place.new_log(), place.environment(), *_FLAGS) as operator,
    ):
        terminal = _Terminal(place, tmp_path, operator)
        text = GUIDE.read_text()
        others = [section(text, each) for each in _ELSEWHERE]
        terminal.follow(
            [part for part in _PART.finditer(text) if not any(begin <= part.start() < end for begin, end in others)]
        )


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.rule("4.4", "VMOD-5", "lifecycle-10.3")
def test_the_commands_of_the_guide_remove_a_pod_in_the_middle_and_change_volumes(tmp_path: Path) -> None:
    if not KUBECTL.exists():
        pytest.skip("kubectl was not built: make controlplane")
    crds = (worlds.CRD, *load_crds(ADVANCED_STATEFUL_SET))
    with (
        worlds.sandbox(tmp_path, crds, timings=_TIMINGS) as place,
        operators.running(place.new_log(), place.environment(), *_FLAGS, _FEATURES) as operator,
    ):
        for name, iops in (("slow", "3000"), ("fast", "6000")):
            place.client.create(STORAGE_CLASSES, _on_ebs(name, iops))
        body = _cluster()
        body["spec"]["tikv"] |= {"replicas": 4, "storageClassName": "slow"}
        body["spec"]["pd"]["storageClassName"] = "slow"
        worlds.create_cluster(place.client, body, "default")
        worlds.await_ready(place, operator, "basic", "default")
        terminal = _Terminal(place, tmp_path, operator)
        text = GUIDE.read_text()
        slots, classes = (_PART.finditer(text, *section(text, each)) for each in _BY_FEATURES)
        terminal.follow(slots)
        pods = _pods(place)
        assert {"basic-tikv-0", "basic-tikv-2", "basic-tikv-3"} == {each for each in pods if "tikv" in each}
        terminal.follow(classes)
        assert pods == _pods(place)


class _Watch:
    """The output of `kubectl get tc -w -o wide`. A reader goes through it, line by line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def skip(self) -> None:
        """Continue after the lines shown so far."""
        self._read = len(self._lines())

    def shows(self, wanted: str) -> bool:
        """True if a line has this STATUS and REASON, where `...` stands for the beginning; continue after it."""
        whole, end = not wanted.startswith("..."), plain(wanted.removeprefix("..."))
        for number, line in enumerate(self._lines()[self._read :], self._read):
            cells = _COLUMNS.split(line.strip())
            told = plain(f"{cells[-3]} {cells[-1]}")
            if told == end if whole else told.endswith(end):
                self._read = number + 1
                return True
        return False

    def told(self) -> str:
        """The next lines, for messages."""
        return "\n" + "\n".join(self._lines()[self._read - 1 :])

    def _lines(self) -> list[str]:
        shown = self._path.read_text()
        return [line for line in shown[: shown.rfind("\n") + 1].splitlines() if len(_COLUMNS.split(line)) > 3]


class _Terminal:
    """A reader with two terminals, and what happens to pods meanwhile."""

    def __init__(self, place: Place, directory: Path, operator: Operator) -> None:
        self._directory = directory
        self._operator = operator
        self._logged = 0
        self._data_plane = place.data_plane
        self._ill: dict[str, _Illness] = {}
        self._shell = Shell(place, directory)
        (directory / "basic.yaml").write_text(yaml.safe_dump(_cluster()))

    def follow(self, parts: Iterable[re.Match[str]]) -> None:
        """Do what the parts of the guide say, in turn."""
        with self.watching() as watch:
            for part in parts:
                line = part.string.count("\n", 0, part.start()) + 1
                self.do(part, watch, f"{GUIDE.name}:{line}")

    @contextlib.contextmanager
    def watching(self) -> Iterator[_Watch]:
        """The watch of the guide, in another terminal."""
        path, log = self._directory / "watch", self._directory / "watch.log"
        command = [str(KUBECTL), "get", "tc", "--watch-only", "-o", "wide", "--no-headers", "-v=6"]
        with path.open("w") as output, log.open("w") as said:
            process = subprocess.Popen(command, env=self._shell.environment, stdout=output, stderr=said)
        eventually(lambda: "watch=true" in log.read_text(), told=log.read_text)
        try:
            yield _Watch(path)
        finally:
            for illness in self._ill.values():
                illness.end()
            process.kill()
            process.wait()

    def do(self, part: re.Match[str], watch: _Watch, where: str) -> None:
        """Run one block of the guide, or the event of a pod between two of them."""
        kind, block, pod, happens = part.groups()
        if happens == "crashes":
            watch.skip()
            self._ill[pod] = _Illness(self._data_plane, pod)
        elif happens == "runs":
            self._ill.pop(pod).end()
        elif kind == "text":
            *steps, end = block.splitlines()
            for line in steps:
                told = partial(self._tells, watch, line)
                eventually(told, PATIENCE, lambda: f"{where} {line}{watch.told()}")  # noqa: B023
            eventually(lambda: watch.shows(end), PATIENCE, lambda: f"{where} {end}{watch.told()}")
        else:
            watch.skip()
            self._logged = len(self._operator.said)
            for command, expected in commands(block):
                self._shell.type(command, expected, where)

    def _tells(self, watch: _Watch, line: str) -> bool:
        """True if the watch shows a step; it may omit one of less than 2 s, which the log reports all the same."""
        if watch.shows(line):
            return True
        message = _COLUMNS.split(line)[0].rpartition("; ")[2].partition(": ")[2]
        return bool(message) and plain(message) in plain(self._operator.said[self._logged :])


class _Illness:
    """A pod that crashes whenever it runs."""

    def __init__(self, data_plane: DataPlane, pod: str) -> None:
        self._over = Event()
        self._thread = Thread(target=self._go_on, args=(data_plane, pod), name=f"illness of {pod}")
        self._thread.start()

    def end(self) -> None:
        """Let the process live."""
        self._over.set()
        self._thread.join()

    def _go_on(self, data_plane: DataPlane, pod: str) -> None:
        while not self._over.wait(0.1):
            data_plane.crash("default", pod)


def _pods(place: Place) -> dict[str, str]:
    """The UID of each pod."""
    return {pod.metadata.name: pod.metadata.uid for pod in place.client.list_page(PODS, "default").items}


def _on_ebs(name: str, iops: str) -> Json:
    return standard_storage_class() | {
        "metadata": {"name": name},
        "provisioner": "ebs.csi.aws.com",
        "parameters": {"type": "gp3", "iops": iops},
    }


def _cluster() -> Json:
    tree = sample("basic")
    for component, replicas in (("pd", 3), ("tikv", 3), ("tidb", 2)):
        tree["spec"][component] |= {"replicas": replicas, "maxFailoverCount": 3}
    tree["spec"]["pd"]["config"] = '[schedule]\nmax-store-down-time = "25s"\n'
    return tree
