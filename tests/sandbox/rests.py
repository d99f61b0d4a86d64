"""Does what is left out, wherever the world says that it would do nothing, and sees that it does nothing."""

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
    """How often each sort of rest was checked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on, in all worlds."""
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
    """Whether claim and volume are as they were; what the step itself has written it has yet to look at."""
    meta, cluster = claim["metadata"], provisioner._cluster
    name = claim["spec"].get("volumeName") or f"pvc-{meta['uid']}"
    there = cluster.get(PERSISTENT_VOLUME_CLAIMS, meta["namespace"], meta["name"])
    return there is claim and cluster.get(PERSISTENT_VOLUMES, "", name) is volume


def _seen(process: Process) -> tuple[object, ...]:
    """What others may see of a process, and of the PD cluster that it is a member of."""
    cluster = process.cluster if isinstance(process, PdProcess) else None
    shared = (cluster.leader, cluster.stores.regions, cluster.quiet_until()) if cluster is not None else ()
    return process.exit, process.woken, [process.listens(port) for port in _PORTS], *shared
