"""A pod's status, rendered from what the kubelet remembers."""

from kube.objects import Json
from sandbox.conditions import with_condition
from sandbox.dataplane.processes import Exit
from sandbox.kubelet.runs import ContainerRun, PodRun

_INITIALIZING: Json = {"waiting": {"reason": "PodInitializing"}}


def pod_status(pod: Json, run: PodRun, node_address: str, now: str) -> Json:
    """The status to write; what others have written into it stays."""
    before: Json = pod.get("status", {})
    init = pod["spec"].get("initContainers") or ()
    to_come = [each for each in init if each["name"] not in run.initialized]
    initialized = not to_come
    lacks_init = run.image in [each["image"] for each in to_come]
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
        "containerStatuses": [_container(container, run, lacks_init) for container in run.containers.values()],
    }
    if run.evicted:
        status |= {"reason": "Evicted", "message": run.evicted}
    if init:
        status["initContainerStatuses"] = [_init_container(each, run) for each in init]
    if run.started:
        status |= {"podIP": run.address, "podIPs": [{"ip": run.address}]}
    return status


def _phase(run: PodRun, finished: bool) -> str:
    if finished:
        return "Succeeded" if run.succeeded and not run.evicted else "Failed"
    return "Running" if run.started else "Pending"


def _container(container: ContainerRun, run: PodRun, lacks_init: bool) -> Json:
    """`lacks_init`: an init container waits for its image, so nobody has looked for that of this one yet."""
    status: Json = {
        "name": container.name,
        "image": container.image,
        "imageID": container.image if container.started_stamp else "",
        "ready": container.ready,
        "started": container.running is not None,
        "restartCount": container.restarts,
        "state": _INITIALIZING if lacks_init else _state(container, run),
        "lastState": {},
    }
    if container.ended is not None:
        status["lastState"] = {"terminated": _terminated(container)}
    return status


def _state(container: ContainerRun, run: PodRun) -> Json:
    if container.running is not None:
        return {"running": {"startedAt": container.started_stamp}}
    if container.restart_at is not None:
        message = f"back-off {container.back_off:g}s restarting failed container={container.name}"
        return {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    if container.ended is not None:
        return {"terminated": _terminated(container)}
    return _waiting(container.image, run, "ContainerCreating")


def _waiting(image: str, run: PodRun, on_the_way: str) -> Json:
    """Why a container waits: for its own image, or for that of another one."""
    if run.image not in ("", image):
        return {"waiting": {"reason": on_the_way}}
    return {"waiting": {"reason": run.waiting} | ({"message": run.message} if run.message else {})}


def _terminated(container: ContainerRun) -> Json:
    assert container.ended is not None
    ended: Json = {
        "exitCode": container.ended.code,
        "reason": container.ended.reason or ("Completed" if container.ended.code == 0 else "Error"),
        "startedAt": container.ended_started_stamp,
        "finishedAt": container.ended_stamp,
    }
    return ended | ({"message": container.ended.message} if container.ended.message else {})


def _init_container(container: Json, run: PodRun) -> Json:
    name = container["name"]
    finished, ends = run.initialized.get(name), run.init_ends.get(name, [])
    state = _waiting(container["image"], run, "PodInitializing") if run.image else _INITIALIZING
    if failed := run.init_failed.get(name):
        state = _failed(failed)
    elif finished is not None:
        ended = {"exitCode": 0, "reason": "Completed", "startedAt": finished, "finishedAt": finished}
        state = {"terminated": ended}
    elif ends and run.init is None:
        message = f"back-off {run.init_back_off:g}s restarting failed container={name}"
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    return {
        "name": name,
        "image": container["image"],
        "imageID": container["image"] if finished is not None else "",
        "ready": finished is not None,
        "restartCount": max(len(ends) - 1, 0) if run.init is None and finished is None else len(ends),
        "state": state,
        "lastState": _failed(ends[-1]) if ends else {},
    }


def _failed(how: Exit) -> Json:
    """The state of an init container that has failed."""
    ended = {"exitCode": how.code, "reason": "Error", "message": how.message}
    return {"terminated": {key: value for key, value in ended.items() if value}}
