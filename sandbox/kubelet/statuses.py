"""A pod's status, from the kubelet's memory."""

from kube.objects import Json
from ports import duration
from sandbox.conditions import with_condition
from sandbox.dataplane.processes import Exit
from sandbox.kubelet.runs import ContainerRun, End, Hold, PodRun


def pod_status(pod: Json, run: PodRun, node_address: str, now: str) -> Json:
    """The status to write; other writers' fields stay."""
    before: Json = pod.get("status", {})
    meta = pod["metadata"]
    full_name = f"{meta['name']}_{meta['namespace']}({meta['uid']})"
    init = pod["spec"].get("initContainers") or ()
    to_come = [each for each in init if each["name"] not in run.initialized]
    initialized = not to_come
    ready = run.started and all(container.ready for container in run.containers.values())
    waiting_for = [container.name for container in run.containers.values() if not container.ready]
    finished = bool(run.evicted or run.init_failed) or (
        run.started and all(each.finished for each in run.containers.values())
    )
    message = f"containers with unready status: [{' '.join(waiting_for)}]" if not ready else ""
    reason = "" if ready else "ContainersNotReady"
    if finished:
        reason, message = ("PodCompleted", "") if run.succeeded else ("PodFailed", "")
    conditions = before.get("conditions")
    conditions = with_condition(conditions, "PodScheduled", True, now)
    conditions = with_condition(
        conditions, "Initialized", initialized, now, reason=reason if finished and run.succeeded else ""
    )
    conditions = with_condition(conditions, "ContainersReady", ready, now, reason=reason, message=message)
    conditions = with_condition(conditions, "Ready", ready, now, reason=reason, message=message)
    status = before | {
        "phase": _phase(run, finished),
        "conditions": conditions,
        "hostIP": node_address,
        "startTime": run.started_stamp,
        "containerStatuses": [
            _container(container, full_name, has_init=bool(init)) for container in run.containers.values()
        ],
    }
    if run.evicted:
        status |= {"reason": "Evicted", "message": run.evicted}
    if init:
        status["initContainerStatuses"] = [
            _init_container(each, run, full_name, is_next=each in to_come[:1]) for each in init
        ]
    if run.has_address:
        status |= {"podIP": run.address, "podIPs": [{"ip": run.address}]}
    return status


def _phase(run: PodRun, finished: bool) -> str:
    if finished:
        return "Succeeded" if run.succeeded and not run.evicted else "Failed"
    return "Running" if run.started else "Pending"


def _container(container: ContainerRun, pod: str, *, has_init: bool) -> Json:
    """`has_init`: init containers precede it."""
    status: Json = {
        "name": container.name,
        "image": container.image,
        "imageID": container.image if container.started_stamp else "",
        "ready": container.ready,
        "started": container.running is not None,
        "restartCount": container.restarts,
        "state": _state(container, pod, "PodInitializing" if has_init else "ContainerCreating"),
        "lastState": _terminated(last) if (last := _last_end(container)) else {},
    }
    return status


def _state(container: ContainerRun, pod: str, on_the_way: str) -> Json:
    if container.running is not None:
        return {"running": {"startedAt": container.started_stamp}}
    if _tells_end(container):
        return _terminated(container.ends[-1])
    if container.restart_at is not None:
        return _back_off(container.name, container.back_off, pod)
    return _waiting(container.hold, on_the_way)


def _tells_end(container: ContainerRun) -> bool:
    return container.running is None and (container.finished or container.told_until is not None)


def _last_end(container: ContainerRun) -> End | None:
    """The end before the current state."""
    ends = container.ends[:-1] if _tells_end(container) else container.ends
    return ends[-1] if ends else None


def _back_off(container: str, seconds: float, pod: str) -> Json:
    message = f"back-off {duration.go_text(seconds)} restarting failed container={container} pod={pod}"
    return {"waiting": {"reason": "CrashLoopBackOff", "message": message}}


def _waiting(hold: Hold, on_the_way: str) -> Json:
    """Why a container waits; `on_the_way` if nothing prevents it."""
    return {"waiting": {"reason": hold.reason or on_the_way} | ({"message": hold.message} if hold.message else {})}


def _terminated(end: End) -> Json:
    how = end.how
    ended: Json = {
        "exitCode": how.code,
        "reason": how.reason or ("Completed" if how.code == 0 else "Error"),
        "startedAt": end.started,
        "finishedAt": end.finished,
    }
    return {"terminated": ended | ({"message": how.message} if how.message else {})}


def _init_container(container: Json, run: PodRun, pod: str, *, is_next: bool) -> Json:
    name = container["name"]
    finished, ends = run.initialized.get(name), run.init_ends.get(name, [])
    is_native = container.get("restartPolicy") == "Always"
    waits = is_next and bool(ends) and run.init is None
    # an end after which it restarts immediately is its current state
    last = ends[:-1] if waits and not run.init_back_off else ends
    return {
        "name": name,
        "image": container["image"],
        "imageID": container["image"] if finished is not None else "",
        "ready": finished is not None,
        "restartCount": len(ends) - waits,
        "state": _init_state(name, run, pod, is_next=is_next),
        "lastState": _failed(last[-1]) if last else {},
    } | ({"state": {"running": {"startedAt": finished}}, "started": True} if is_native and finished else {})


def _init_state(name: str, run: PodRun, pod: str, *, is_next: bool) -> Json:
    if failed := run.init_failed.get(name):
        return _failed(failed)
    if finished := run.initialized.get(name):
        ended = {"exitCode": 0, "reason": "Completed", "startedAt": finished, "finishedAt": finished}
        return {"terminated": ended}
    if not is_next:
        return _waiting(Hold(), "PodInitializing")
    if run.init is not None:
        return {"running": {}}
    if ends := run.init_ends.get(name):
        return _back_off(name, run.init_back_off, pod) if run.init_back_off else _failed(ends[-1])
    return _waiting(run.hold, "PodInitializing")


def _failed(how: Exit) -> Json:
    """The state of an init container that has failed."""
    ended = {"exitCode": how.code, "reason": "Error", "message": how.message}
    return {"terminated": {key: value for key, value in ended.items() if value}}
