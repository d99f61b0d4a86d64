"""One actor for the kubelets of all simulated nodes."""

import itertools
import math
import re
from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import replace

from kube.objects import Json
from kube.resources import CONFIG_MAPS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, SECRETS
from sandbox.cluster import Cluster, labels_of
from sandbox.dataplane.network import Running
from sandbox.dataplane.output import Output
from sandbox.dataplane.processes import Exit, Launch
from sandbox.dataplane.runtime import CHANGED, DataPlane, Probe
from sandbox.dataplane.script import is_script
from sandbox.dataplane.tls import Certificate
from sandbox.kubelet.faults import KubeletFaults, matches_any, slowness
from sandbox.kubelet.images import FAILED, INVALID, Trouble
from sandbox.kubelet.mounts import Mounts, NotMountable, has_renewable
from sandbox.kubelet.nodes import Nodes, NodeSpec
from sandbox.kubelet.runs import LOST, ContainerRun, Hold, PodRun, Rest, longer
from sandbox.kubelet.statuses import pod_status
from sandbox.owners import is_deleted
from sandbox.stamps import stamp
from sandbox.timings import Timings

_URL = re.compile(r"(https?)://(?:127\.0\.0\.1|localhost):(\d+)(/\S*)?")
_SLEEP = re.compile(r"\bsleep (\d+)")
_COMPONENT = "app.kubernetes.io/component"
_PULL_BACK_OFF = "ImagePullBackOff"
_BAD_CONFIGURATION = "CreateContainerConfigError"
_DEFAULT_GRACE = 30
_NEVER = float("inf")
_PROBE_PERIOD = 10
_PROBE_FAILURES = 3


class Kubelet:
    """Runs the pods that are bound to its nodes (dataplane-apis.md 14.3)."""

    name = "kubelet"
    watches: tuple[Hashable, ...] = (
        PODS,
        NODES,
        CONFIG_MAPS,
        SECRETS,
        PERSISTENT_VOLUME_CLAIMS,
        PERSISTENT_VOLUMES,
        CHANGED,
    )

    def __init__(self, cluster: Cluster, data_plane: DataPlane, nodes: Nodes, timings: Timings) -> None:
        self._cluster = cluster
        self._data_plane = data_plane
        self._nodes = nodes
        self._timings = timings
        self._runs: dict[str, PodRun] = {}
        self._addresses = 0
        self.delays: dict[str, float] = {}
        """The seconds by which the servers of a component start later than by the timings, by its label."""
        self._adopted: set[str] = set()
        """The UIDs of adopted pods."""
        self._reserved: dict[str, str] = {}
        """The addresses of pods that have one already, by UID."""
        self.cut_short: list[str] = []
        """The pods, as `namespace/name`, whose hooks held their stop until the end of their grace periods."""

    @property
    def faults(self) -> KubeletFaults:
        """The faults; notify nodes and data plane after a change."""
        return self._nodes.faults

    def claim_uid(self, namespace: str, name: str) -> str:
        """The identity of a claim's disk. Raises LookupError."""
        claim = self._cluster.get(PERSISTENT_VOLUME_CLAIMS, namespace, name)
        if claim is None:
            raise LookupError(f"no persistentvolumeclaim {namespace}/{name}")
        uid: str = claim["metadata"]["uid"]
        return uid

    def node_of(self, namespace: str, pod: str) -> NodeSpec:
        """The machine of a pod. Raises LookupError."""
        found = self._cluster.get(PODS, namespace, pod)
        node = found["spec"].get("nodeName", "") if found is not None else ""
        if node not in self._nodes.specs:
            raise LookupError(f"pod {namespace}/{pod} is on no node of the sandbox")
        return self._nodes.specs[node]

    def zone(self, name: str) -> list[str]:
        """The names of the machines in a zone."""
        return [node_spec.name for node_spec in self._nodes.specs.values() if node_spec.zone == name]

    def claims_on(self, node: str) -> list[str]:
        """The identities of the claims whose volumes only that node can reach."""
        return [
            volume["spec"]["claimRef"]["uid"]
            for volume in self._cluster.list(PERSISTENT_VOLUMES)
            if volume["spec"].get("claimRef") and _is_on(volume, node)
        ]

    def adopt(self, pods: Iterable[Json]) -> None:
        """Start the containers of running pods of another world without their past: image, address and restarts stay.

        Their init containers run again, because they write to volumes, which are empty here.
        """
        pods = list(pods)
        self.reserve(pods)
        for pod in pods:
            self._adopted.add(pod["metadata"]["uid"])
        self.store_images(pods)

    def store_images(self, pods: Iterable[Json]) -> None:
        """Let the images of running pods be on their nodes."""
        for pod in pods:
            spec = pod["spec"]
            for container in (*spec["containers"], *(spec.get("initContainers") or ())):
                self._nodes.images.add(spec["nodeName"], container["image"])

    def reserve(self, pods: Iterable[Json]) -> None:
        """Let pods that have an address keep it."""
        self._reserved |= {
            pod["metadata"]["uid"]: address for pod in pods if (address := pod.get("status", {}).get("podIP"))
        }

    def step(self) -> float | None:
        """Advance every pod by one step; return when the next one is due."""
        due: list[float | None] = []
        seen = set()
        now, is_sound = self._cluster.clock.now(), self.faults.are_none
        for pod in self._cluster.list(PODS):
            uid: str = pod["metadata"]["uid"]
            rest = run.rest if is_sound and (run := self._runs.get(uid)) else None
            if rest is not None and rest.lasts(pod, now):
                seen.add(uid)
                due.append(rest.until)
                continue
            node = pod["spec"].get("nodeName", "")
            if node not in self._nodes.specs or self.faults.is_silent(node):
                continue
            seen.add(uid)
            due.append(self._terminate(pod) if is_deleted(pod) else self._run(pod))
        if missed := self._runs.keys() - seen:
            self._miss(missed)
        return min((time for time in due if time is not None and time != _NEVER), default=None)

    def _miss(self, uids: Set[str]) -> None:
        """End the processes of pods that are deleted or whose nodes are silent; such a pod keeps its volumes."""
        existing = {pod["metadata"]["uid"] for pod in self._cluster.list(PODS)}
        for uid in sorted(uids):
            # a node that is cut off keeps its processes, whatever happened to the pods
            if self._runs[uid].node not in self.faults.cut_off:
                self._forget(uid, keeps_volumes=uid in existing)

    def _forget(self, uid: str, *, keeps_volumes: bool = False) -> None:
        run = self._runs.pop(uid, None)
        for running in (*_running(run), *run.hooks.values()) if run is not None else ():
            self._data_plane.kill(running)
        self._data_plane.forget(uid, keeps_volumes=keeps_volumes)

    def _run(self, pod: Json) -> float | None:
        if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            return None
        run = self._runs.get(pod["metadata"]["uid"]) or self._accept(pod)
        run.rest = None
        due = None if run.evicted else self._advance(pod, run)
        self._report(pod, run)
        run.rest = _rest(pod, run, _NEVER if due is None else due)
        return due

    def evict(self, namespace: str, name: str, why: str) -> None:
        """Evict a pod from its node: its processes are killed and not restarted."""
        pod = self._cluster.get(PODS, namespace, name)
        run = self._runs.get(pod["metadata"]["uid"]) if pod is not None else None
        if pod is None or run is None:
            return
        run.evicted, run.rest = why, None
        for running in _running(run):
            self._data_plane.kill(running)
        for container in run.containers.values():
            container.end(Exit(137), stamp(self._cluster.clock.wall()))
        self._warn(pod, run, "Evicted", why)
        self._data_plane.changed()

    def output(self, pod_uid: str, container: str, previous: bool) -> Output | None:
        """The output of a container's last run, or of the previous one; None if there was none."""
        run = self._runs.get(pod_uid)
        found = run.containers.get(container) if run else None
        outputs = found.outputs if found else []
        back = 2 if previous else 1
        return outputs[-back] if len(outputs) >= back else None

    def _accept(self, pod: Json) -> PodRun:
        uid = pod["metadata"]["uid"]
        containers = {
            container["name"]: ContainerRun(container["name"], container["image"])
            for container in pod["spec"]["containers"]
        }
        for status in pod.get("status", {}).get("containerStatuses") or ():
            if uid in self._adopted and status["name"] in containers:
                containers[status["name"]].restarts = status["restartCount"]
            elif status["name"] in containers and "running" in status["state"]:
                for_good = _ends_for_good(pod, LOST)
                containers[status["name"]].was_lost(status, stamp(self._cluster.clock.wall()), for_good=for_good)
        host = self._nodes.specs[pod["spec"]["nodeName"]].address
        address = self._reserved.get(uid) or self._new_address()
        run = PodRun(pod["spec"]["nodeName"], host if pod["spec"].get("hostNetwork") else address, containers)
        run.started_stamp = stamp(self._cluster.clock.wall())
        self._runs[uid] = run
        return run

    def _new_address(self) -> str:
        address, taken = "", self._reserved.values()
        while not address or address in taken:
            self._addresses += 1
            address = f"10.244.{self._addresses // 250 % 250}.{self._addresses % 250 + 1}"
        return address

    def _advance(self, pod: Json, run: PodRun) -> float | None:
        """Advance volumes, init containers, images, containers and readiness as far as possible now."""
        now = self._cluster.clock.now()
        if not run.prepared:
            run.prepared = self._prepare(pod, run, now)
        if not run.prepared:
            return next((time for time in (run.init_until, run.hold.until) if time and time > now), None)
        due = [self._keep(pod, run, spec, now) for spec in pod["spec"]["containers"]]
        return min((time for time in due if time is not None), default=None)

    def _prepare(self, pod: Json, run: PodRun, now: float) -> bool:
        """True if everything before the containers is done: volumes are mounted, init containers have run."""
        try:
            mounts = self._mounts(pod)
        except NotMountable as missing:
            self._warn(pod, run, "FailedMount", f"MountVolume.SetUp failed for volume {missing}")
            return False
        run.has_address = True
        return not run.init_failed and self._initialize(pod, run, mounts, now)

    def _mounts(self, pod: Json) -> Mounts:
        """The pod's current mounts, which are expensive and needed by few running containers. Raises NotMountable."""
        return Mounts(self._cluster, pod, self._data_plane.disk)

    def _has_image(self, pod: Json, run: PodRun, held: PodRun | ContainerRun, image: str) -> bool:
        """True if a container's image is on the node; each is pulled independently.

        `held` is the container whose `hold` reports it.
        """
        now, trouble, images = self._cluster.clock.now(), self.faults.image_trouble(image), self._nodes.images
        if held.hold.until is None and (trouble is None or trouble[0] != INVALID):
            is_there = trouble is None and images.has(run.node, image)
            held.hold = Hold(until=now if is_there else now + self._timings.image_pull)
        if now < (held.hold.until or 0.0):
            return False
        if trouble is not None:
            held.hold = self._refused(pod, run, held.hold, image, trouble)
            return False
        held.hold = Hold(until=held.hold.until)
        images.add(run.node, image)
        return True

    def _refused(self, pod: Json, run: PodRun, hold: Hold, image: str, trouble: Trouble) -> Hold:
        """Fail one attempt, which takes time; between attempts come pauses, as after crashes."""
        now, (reason, message) = self._cluster.clock.now(), trouble
        if hold.reason == FAILED == reason:
            back_off = longer(hold.back_off, self._timings)
            said = f'Back-off pulling image "{image}": {FAILED}: {message}'
            self._warn(pod, run, "BackOff", said)
            return Hold(_PULL_BACK_OFF, said, now + back_off, back_off)
        if hold.reason == reason == INVALID:
            return hold
        if reason == INVALID:
            self._warn(pod, run, "InspectFailed", message)
        else:
            self._warn(pod, run, "Failed", f'Failed to pull image "{image}": {message}')
        self._miss_pull_secrets(pod, run)
        return Hold(reason, message, None if reason == INVALID else now + self._timings.image_pull, hold.back_off)

    def _miss_pull_secrets(self, pod: Json, run: PodRun) -> None:
        names = [each["name"] for each in pod["spec"].get("imagePullSecrets") or ()]
        missing = [name for name in names if self._cluster.get(SECRETS, pod["metadata"]["namespace"], name) is None]
        if missing:
            what = f"Unable to retrieve some image pull secrets ({', '.join(missing)})"
            message = f"{what}; attempting to pull the image may not succeed."
            self._warn(pod, run, "FailedToRetrieveImagePullSecret", message)

    def _initialize(self, pod: Json, run: PodRun, mounts: Mounts, now: float) -> bool:
        for container in pod["spec"].get("initContainers") or ():
            if container["name"] in run.initialized:
                continue
            if run.init is None and not self._has_image(pod, run, run, container["image"]):
                return False
            if run.init is None and run.init_until is None:
                run.init_until = now + self._timings.init_container
            if run.init_until is not None and now < run.init_until:
                return False
            # a native sidecar has begun, and the next one need not wait for its end
            if container.get("restartPolicy") != "Always" and not self._has_run(pod, run, container, mounts):
                return False
            run.initialized[container["name"]] = stamp(self._cluster.clock.wall())
            run.init_until, run.init_back_off = None, 0.0
            run.hold = Hold()
        return True

    def _has_run(self, pod: Json, run: PodRun, container: Json, mounts: Mounts) -> bool:
        """True if an init container has done its work; one without a script has none that the sandbox knows."""
        try:
            launch = _launch(pod, container, mounts, run.address, 0.0)
        except NotMountable as missing:
            run.hold = Hold(_BAD_CONFIGURATION, str(missing))
            self._warn(pod, run, "Failed", f"Error: {missing}")
            return False
        run.hold = Hold()
        if not is_script(launch.command):
            return True
        if run.init is None:
            run.init, run.init_until = self._data_plane.start(replace(launch, is_task=True)), None
        how = run.init.process.exit
        if how is None:
            return False
        run.init = None
        if how.code and pod["spec"].get("restartPolicy") == "Never":
            run.init_failed[container["name"]] = how
        elif how.code:
            ends = run.init_ends.setdefault(container["name"], [])
            run.init_back_off = longer(run.init_back_off, self._timings) if ends else 0.0
            ends.append(how)
            run.init_until = self._cluster.clock.now() + run.init_back_off
            if run.init_back_off:
                name = container["name"]
                self._cluster.event(pod, "Warning", "BackOff", f"Back-off restarting failed container {name}")
        return not how.code

    def _keep(self, pod: Json, run: PodRun, spec: Json, now: float) -> float | None:
        """Keep a container running and update its readiness; return when to check again."""
        container = run.containers[spec["name"]]
        self._note_exit(pod, container, now)
        if container.finished:
            return None
        if container.running is None:
            due = self._start(pod, run, spec, now)
            if container.running is None:
                return due
        times = (self._renew(pod, spec, container, now), self._look(pod, spec, container, now))
        return min((time for time in times if time is not None), default=None)

    def _note_exit(self, pod: Json, container: ContainerRun, now: float) -> None:
        how = container.running.process.exit if container.running is not None else None
        if how is None:
            return
        if matches_any(self.faults.out_of_memory, pod):
            how = replace(how, reason="OOMKilled")
        if _ends_for_good(pod, how):
            container.end(how, stamp(self._cluster.clock.wall()))
            return
        if container.hook is not None:
            self._data_plane.kill(container.hook)
            container.hook = None
        container.crashed(how, now, stamp(self._cluster.clock.wall()), self._timings)
        if container.back_off:
            self._cluster.event(pod, "Warning", "BackOff", f"Back-off restarting failed container {container.name}")

    def _start(self, pod: Json, run: PodRun, spec: Json, now: float) -> float | None:
        """Start a container unless something prevents it; return when to check again if time alone helps."""
        container = run.containers[spec["name"]]
        if container.told_until is not None and now < container.told_until:
            return container.told_until
        container.told_until = None
        due = container.restart_at if container.started_stamp else self._first_start(pod, run, spec, now)
        if due is None or now < due:
            return due
        try:
            mounts = self._mounts(pod)
        except NotMountable:
            return None
        try:
            delay = self.delays.get(labels_of(pod).get(_COMPONENT, ""), 0.0)
            launch = _launch(pod, spec, mounts, run.address, slowness(self.faults.slow, pod) + delay)
        except NotMountable as missing:
            container.hold = Hold(_BAD_CONFIGURATION, str(missing), now)
            self._warn(pod, run, "Failed", f"Error: {missing}")
            return None
        container.hold = Hold()
        container.restarts += container.restart_at is not None
        container.restart_at = None
        container.running = self._data_plane.start(launch)
        container.outputs = [*container.outputs[-1:], container.running.output]
        container.started_at, container.started_stamp = now, stamp(self._cluster.clock.wall())
        script = _script_of(spec, "postStart")
        container.hook = self._data_plane.run_beside(container.running, script) if script else None
        if matches_any(self.faults.full, pod):
            container.running.output.note("FATAL", "no space left on device")
            self._data_plane.kill(container.running, 1)
        elif matches_any(self.faults.crashing, pod):
            self._data_plane.kill(container.running, 1)
        elif matches_any(self.faults.out_of_memory, pod):
            self._data_plane.kill(container.running)
        return None

    def _first_start(self, pod: Json, run: PodRun, spec: Json, now: float) -> float | None:
        """When a container may start for the first time, or its image can be pulled again; None while unknown."""
        container = run.containers[spec["name"]]
        if not self._has_image(pod, run, container, spec["image"]):
            return container.hold.until
        if container.start_at is None:
            container.start_at = now + self._timings.container_start
        return container.start_at

    def _renew(self, pod: Json, spec: Json, container: ContainerRun, now: float) -> float | None:
        """Update changed Secrets in a running container after some time; return when."""
        if container.running is None or not has_renewable(pod, spec):
            return None
        try:
            mounts = self._mounts(pod)
        except NotMountable:
            return None
        launch = container.running.launch
        changed = {path: text for path, text in mounts.renewable(spec).items() if launch.current(path) != text}
        if not changed:
            container.renews_at = None
            return None
        if container.renews_at is None:
            container.renews_at = now + self._timings.secret_refresh
        if now < container.renews_at:
            return container.renews_at
        launch.renewed.update(changed)
        container.renews_at = None
        self._data_plane.changed()
        return None

    def _look(self, pod: Json, spec: Json, container: ContainerRun, now: float) -> float | None:
        running = container.running
        assert running is not None
        probe: Json = spec.get("readinessProbe") or {}
        first: float = container.started_at + probe.get("initialDelaySeconds", 0) * self._timings.probe_delay
        if not self._has_begun(pod, self._runs[pod["metadata"]["uid"]], container):
            return None
        if now < first:
            return first
        found = self._is_serving(pod, spec, running)
        if found == container.ready:
            container.turns_at = None
            return None
        if container.turns_at is None:
            container.turns_at = self._believed_at(probe, container.ready, first, now)
        if now < container.turns_at:
            return container.turns_at
        container.ready, container.turns_at = found, None
        return None

    def _is_serving(self, pod: Json, spec: Json, running: Running) -> bool:
        """The result of a readiness probe now."""
        if matches_any(self.faults.unready, pod):
            failed = "Readiness probe failed: HTTP probe failed with statuscode: 500"
            self._warn(pod, self._runs[pod["metadata"]["uid"]], "Unhealthy", failed)
            return False
        target = _probe_target(spec.get("readinessProbe") or {}, spec, running.launch)
        if target is not None:
            return self._data_plane.probe(running, target)
        # without a probe, running suffices: TiKV has none unless the user sets one
        return running.process.exit is None

    def _believed_at(self, probe: Json, ready: bool, first: float, now: float) -> float:
        """When enough consecutive probes will have seen the current result; computed, so that no probe needs to run."""
        period: float = probe.get("periodSeconds", _PROBE_PERIOD) * self._timings.probe_period
        if not probe or period <= 0:
            return now
        times = probe.get("failureThreshold", _PROBE_FAILURES) if ready else probe.get("successThreshold", 1)
        following = math.ceil((now - first) / period)
        return float(first + (following + times - 1) * period)

    def _terminate(self, pod: Json) -> float | None:
        run = self._runs.get(pod["metadata"]["uid"])
        if run is None:
            self._cluster.delete(PODS, pod, grace=0)
            return None
        now = self._cluster.clock.now()
        live = _running(run)
        if run.kill_at is None:
            grace = pod["metadata"].get("deletionGracePeriodSeconds", _DEFAULT_GRACE)
            run.kill_at = now + grace * self._timings.grace_second
            run.stop_at = now + _pre_stop(pod) * self._timings.grace_second
            run.hooks = self._begin_hooks(pod, run)
        if run.stop_at is not None and now >= run.stop_at and not _are_running(run.hooks.values()):
            run.stop_at = None
            self._tell_failures(pod, run)
            for running in live:
                self._data_plane.stop(running)
        if now < run.kill_at and any(running.process.exit is None for running in live):
            return min(time for time in (run.kill_at, run.stop_at) if time is not None and time > now)
        if pod["metadata"].get("deletionGracePeriodSeconds") and _are_running(run.hooks.values()):
            self.cut_short.append(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
        for running in live:
            self._data_plane.kill(running)
        self._tell_ends(pod, run)
        if matches_any(self.faults.stuck, pod):
            return None
        self._forget(pod["metadata"]["uid"])
        self._cluster.delete(PODS, pod, grace=0)
        return None

    def _begin_hooks(self, pod: Json, run: PodRun) -> dict[str, Running]:
        """The scripts of the preStop hooks of the containers that run."""
        begun = {}
        for spec in pod["spec"]["containers"]:
            running, script = run.containers[spec["name"]].running, _script_of(spec, "preStop")
            if running is not None and running.process.exit is None and script:
                begun[spec["name"]] = self._data_plane.run_beside(running, script)
        return begun

    def _tell_failures(self, pod: Json, run: PodRun) -> None:
        for hook in run.hooks.values():
            if hook.process.exit is not None and hook.process.exit.code:
                self._warn(pod, run, "FailedPreStopHook", "PreStopHook failed")

    def _has_begun(self, pod: Json, run: PodRun, container: ContainerRun) -> bool:
        """True if a container has no postStart hook, or one that has ended; a failure kills the container."""
        if container.hook is None:
            return True
        how = container.hook.process.exit
        if how is None:
            return False
        container.hook = None
        if how.code and container.running is not None:
            self._warn(pod, run, "FailedPostStartHook", "PostStartHook failed")
            self._data_plane.kill(container.running)
        return True

    def _tell_ends(self, pod: Json, run: PodRun) -> None:
        """Report the ends of a deleted pod's containers before the pod vanishes."""
        for container in run.containers.values():
            how = container.running.process.exit if container.running is not None else None
            if how is not None:
                container.end(how, stamp(self._cluster.clock.wall()))
        self._report(pod, run)

    def _report(self, pod: Json, run: PodRun) -> None:
        facts = run.facts()
        if run.told is pod and run.told_facts == facts:
            return
        host = self._nodes.specs[pod["spec"]["nodeName"]].address
        status = pod_status(pod, run, host, stamp(self._cluster.clock.wall()))
        if status == pod.get("status"):
            run.told, run.told_facts = pod, facts
        elif status != run.written and self._cluster.set_status(PODS, pod, status) is not None:
            run.written = status

    def _warn(self, pod: Json, run: PodRun, reason: str, message: str) -> None:
        if message not in run.reported:
            self._cluster.event(pod, "Warning", reason, message)
            run.reported.add(message)


def _running(run: PodRun) -> list[Running]:
    """The processes of a pod."""
    found = (run.init, *(container.running for container in run.containers.values()))
    return [running for running in found if running is not None]


def _rest(pod: Json, run: PodRun, until: float) -> Rest | None:
    """The state that a pod rests on; None if other changes may give the kubelet work."""
    if run.evicted or run.told is not pod:
        return None
    probed = []
    for spec in pod["spec"]["containers"]:
        container = run.containers[spec["name"]]
        if container.running is None or container.hook is not None or has_renewable(pod, spec):
            return None
        target = _probe_target(spec.get("readinessProbe") or {}, spec, container.running.launch)
        if target is not None and target.path is not None:
            return None
        # the last result either counts already or will
        served = container.ready if container.turns_at is None else not container.ready
        probed.append((container.running, target.port if target is not None else None, served))
    return Rest(pod, until, tuple(probed))


def _ends_for_good(pod: Json, how: Exit) -> bool:
    """True if a container that ended like this is not restarted."""
    policy = pod["spec"].get("restartPolicy", "Always")
    return policy == "Never" or (policy == "OnFailure" and how.code == 0)


def _is_on(volume: Json, node: str) -> bool:
    required = (volume["spec"].get("nodeAffinity") or {}).get("required") or {}
    expressions = [each for term in required.get("nodeSelectorTerms") or () for each in term["matchExpressions"]]
    return any(each["key"] == "kubernetes.io/hostname" and each["values"] == [node] for each in expressions)


def _launch(pod: Json, container: Json, mounts: Mounts, address: str, slowness: float) -> Launch:
    meta = pod["metadata"]
    return Launch(
        namespace=meta["namespace"],
        pod=meta["name"],
        pod_uid=meta["uid"],
        image=container["image"],
        command=(*container.get("command", ()), *container.get("args", ())),
        env=mounts.environment(container),
        files=mounts.files(container),
        disks=mounts.disks(container),
        ports=frozenset(port["containerPort"] for port in container.get("ports") or ()),
        labels=labels_of(pod),
        service_account=pod["spec"].get("serviceAccountName", "default"),
        address=address,
        is_task=pod["spec"].get("restartPolicy", "Always") != "Always",
        slowness=slowness,
    )


def _pre_stop(pod: Json) -> float:
    """Seconds of the longest preStop sleep outside scripts; other actions take no time."""
    longest = 0.0
    for container in pod["spec"]["containers"]:
        hook = (container.get("lifecycle") or {}).get("preStop") or {}
        longest = max(longest, (hook.get("sleep") or {}).get("seconds", 0))
        command = (hook.get("exec") or {}).get("command") or ()
        match = None if is_script(command) else _SLEEP.search(" ".join(command))
        longest = max(longest, float(match.group(1)) if match is not None else 0.0)
    return longest


def _script_of(container: Json, hook: str) -> Sequence[str]:
    """The command of a container's hook, if a shell runs it; otherwise empty."""
    handler = (container.get("lifecycle") or {}).get(hook) or {}
    command: list[str] = (handler.get("exec") or {}).get("command") or []
    return command if is_script(command) else ()


def _are_running(hooks: Iterable[Running]) -> bool:
    return any(hook.process.exit is None for hook in hooks)


def _probe_target(probe: Json, container: Json, launch: Launch) -> Probe | None:
    """The target of a probe; None if the sandbox does not know its kind."""
    if "tcpSocket" in probe:
        return Probe(_port(probe["tcpSocket"]["port"], container))
    if "httpGet" in probe:
        asked = probe["httpGet"]
        # the kubelet neither verifies nor presents a certificate
        scheme, stranger = asked.get("scheme", "HTTP").lower(), Certificate(verifies=False)
        return Probe(_port(asked["port"], container), asked.get("path", "/"), scheme, stranger)
    command: list[str] = probe.get("exec", {}).get("command") or []
    url = next(filter(None, map(_URL.search, command)), None)
    if url is None:
        return None
    return Probe(int(url.group(2)), url.group(3) or "/", url.group(1), _certificate_of(command, launch))


def _certificate_of(command: Sequence[str], launch: Launch) -> Certificate:
    """The certificate of a `curl` command, from its options."""
    words = " ".join(command).split()
    following = dict(itertools.pairwise(words))
    ca, cert, key = (launch.current(following.get(option, "")) for option in ("--cacert", "--cert", "--key"))
    return Certificate(ca, cert, key, verifies=not {"-k", "--insecure"} & set(words))


def _port(port: int | str, container: Json) -> int:
    if isinstance(port, int):
        return port
    named = {each.get("name"): each["containerPort"] for each in container.get("ports") or ()}
    return int(named.get(port, 0))
