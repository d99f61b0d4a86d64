"""What the API server adds to the spec of a StatefulSet that leaves fields out (objects.md 11.7).

Only for telling such an addition from one by somebody's hand: a default that is not known here is taken for an edit,
and putting that right changes nothing, as the server adds it again.
"""

from collections.abc import Mapping
from typing import Any

from kube.objects import Json

_CONSTANT: Mapping[str, Any] = {
    "apiVersion": "v1",
    "defaultMode": 420,
    "divisor": "0",
    "dnsPolicy": "ClusterFirst",
    "expirationSeconds": 3600,
    "failureThreshold": 3,
    "path": "/",
    "periodSeconds": 10,
    "procMount": "Default",
    "protocol": "TCP",
    "restartPolicy": "Always",
    "revisionHistoryLimit": 10,
    "schedulerName": "default-scheduler",
    "scheme": "HTTP",
    "successThreshold": 1,
    "terminationGracePeriodSeconds": 30,
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "timeoutSeconds": 1,
    "volumeMode": "Filesystem",
    "whenDeleted": "Retain",
    "whenScaled": "Retain",
}

_DERIVED: Mapping[str, str] = {
    "hostPort": "containerPort",
    "requests": "limits",
    "serviceAccount": "serviceAccountName",
}
"""Fields that repeat another one beside them."""


def is_default(key: str, value: Any, beside: Json) -> bool:
    """Whether the API server gives a field this value when it is left out; `beside` is the tree that holds it."""
    if key == "imagePullPolicy":
        return bool(value == _pull_policy(beside.get("image") or ""))
    if key in _DERIVED:
        return bool(value == beside.get(_DERIVED[key]))
    return key in _CONSTANT and bool(value == _CONSTANT[key])


def _pull_policy(image: str) -> str:
    tag = image.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if "@" in image or tag not in ("", "latest") else "Always"
