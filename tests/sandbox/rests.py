"""Performs the steps that the world skips, and checks that they have no effect."""

from collections.abc import Callable
from functools import wraps

import pytest

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from sandbox.controllers.volumes import Provisioner
from sandbox.dataplane.network import Running
from sandbox.dataplane.pd.process import PdProcess
from sandbox.dataplane.processes import Process
from sandbox.dataplane.runtime import DataPlane
from sandbox.kubelet.kubelet import Kubelet
from sandbox.kubelet.runs import Rest
from sandbox.owners import is_deleted

_PORTS = (2379, 2380, 4000, 6000, 8250, 8261, 10080, 10261, 20160, 20180)


class LookedTwice:
    """Counts the checks of each kind of rest."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Check all worlds from now on."""
        self.processes = self.pods = self.claims = 0
        self._kubelet: Kubelet | None = None
        monkeypatch.setattr(DataPlane, "_awake", self._stepped(DataPlane._awake))
        monkeypatch.setattr(Kubelet, "step", self._noted(Kubelet.step))
        monkeypatch.setattr(Rest, "lasts", self._run(Rest.lasts))
        monkeypatch.setattr(Provisioner, "step", self._synced(Provisioner.step))

    def _stepped(self, awake: Callable[[DataPlane, int], list[Running]]) -> Callable[[DataPlane, int], list[Running]]:
        @wraps(awake)
        def checked(data_plane: DataPlane, disturbances: int) -> list[Running]:
            found = awake(data_plane, disturbances)
            for running in data_plane._processes:
                if not running.hung and not any(each is running for each in found):
                    before = _seen(running.process)
                    due = running.process.step()
                    assert running.due == (float("inf") if due is None else due)
                    assert before == _seen(running.process)
                    self.processes += 1
            return found

        return checked

    def _noted(self, step: Callable[[Kubelet], float | None]) -> Callable[[Kubelet], float | None]:
        @wraps(step)
        def noted(kubelet: Kubelet) -> float | None:
            self._kubelet = kubelet
            return step(kubelet)

        return noted

    def _run(self, lasts: Callable[[Rest, Json, float], bool]) -> Callable[[Rest, Json, float], bool]:
        @wraps(lasts)
        def checked(rest: Rest, pod: Json, now: float) -> bool:
            found = lasts(rest, pod, now)
            kubelet = self._kubelet
            if found and kubelet is not None:
                run = kubelet._runs[pod["metadata"]["uid"]]
                before, changes = run.facts(), kubelet._cluster.changes
                due = kubelet._run(pod)
                assert rest.until == (float("inf") if due is None else due)
                assert (before, changes) == (run.facts(), kubelet._cluster.changes)
                self.pods += 1
            return found

        return checked

    def _synced(self, step: Callable[[Provisioner], float | None]) -> Callable[[Provisioner], float | None]:
        @wraps(step)
        def checked(provisioner: Provisioner) -> float | None:
            due = step(provisioner)
            changes = provisioner._cluster.changes
            for each in provisioner._settled.values():
                if _is_shown(provisioner, each.claim, each.volume) and not is_deleted(each.claim):
                    assert provisioner._sync(each.claim, each.storage_class) is None
                    self.claims += 1
            assert changes == provisioner._cluster.changes
            return due

        return checked


def _is_shown(provisioner: Provisioner, claim: Json, volume: Json | None) -> bool:
    """True if claim and volume are unchanged; the step has yet to read its own writes."""
    meta, cluster = claim["metadata"], provisioner._cluster
    name = claim["spec"].get("volumeName") or f"pvc-{meta['uid']}"
    there = cluster.get(PERSISTENT_VOLUME_CLAIMS, meta["namespace"], meta["name"])
    return there is claim and cluster.get(PERSISTENT_VOLUMES, "", name) is volume


def _seen(process: Process) -> tuple[object, ...]:
    """The visible state of a process and of its PD cluster."""
    cluster = process.cluster if isinstance(process, PdProcess) else None
    shared = (cluster.leader, cluster.stores.regions, cluster.quiet_until()) if cluster is not None else ()
    return process.exit, process.woken, [process.listens(port) for port in _PORTS], *shared
