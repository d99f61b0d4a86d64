"""TiDB's customized startup probe: a program from an image of its own (objects.md 4.4)."""

from apis.component_specs import CustomizedStartupProbe
from kube.objects import Json
from member.objects import pod, volumes
from member.startscript.shell import quoted

_DIRECTORY = "/var/lib/customized-startup-probe"


def volume(probe: CustomizedStartupProbe) -> Json:
    """The volume through which the program reaches TiDB's container."""
    return {"name": probe.binary_name, "emptyDir": {}}


def mount(probe: CustomizedStartupProbe) -> Json:
    """Where the program lies, in both containers."""
    return volumes.mount(probe.binary_name, _DIRECTORY)


def init_container(probe: CustomizedStartupProbe, security_context: Json | None) -> Json:
    """The container that copies the program."""
    name = probe.binary_name
    copy = f"cp {quoted(f'/{name}')} {quoted(f'{_DIRECTORY}/{name}')} && echo {quoted(f'{name} copied')}"
    return pod.without_unset(
        {
            "name": name,
            "image": probe.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-c"],
            "args": [f"# Copies the probe. Made by tidb-operator from the TidbCluster.\n{copy}\n"],
            "volumeMounts": [mount(probe)],
            "securityContext": security_context,
        }
    )


def startup_probe(probe: CustomizedStartupProbe) -> Json:
    """The probe that runs the program. `initialDelaySeconds` is ignored, as in v1.6."""
    times = {
        "timeoutSeconds": probe.timeout_seconds,
        "periodSeconds": probe.period_seconds,
        "failureThreshold": probe.failure_threshold,
    }
    given = {name: value for name, value in times.items() if value is not None and value >= 1}
    return {"exec": {"command": [f"{_DIRECTORY}/{probe.binary_name}", *probe.args]}, "successThreshold": 1, **given}
