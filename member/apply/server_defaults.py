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


_OF_PODS = ("restartPolicy", "terminationGracePeriodSeconds")
"""Fields that have their default in a pod, and mean something else in a container or a probe that leaves them out."""

_USERS_KEYS = ("annotations", "labels", "matchLabels", "nodeSelector")
"""Maps whose keys are the user's, and no fields."""


_WITH_DEFAULTS = frozenset({"imagePullPolicy", *_DERIVED, *_CONSTANT})
"""All fields that have a default here."""


def is_default(key: str, value: Any, beside: Json) -> bool:
    """Whether the API server gives a field this value when it is left out; `beside` is the tree that holds it."""
    if key == "imagePullPolicy":
        return bool(value == _pull_policy(str(beside.get("image") or "")))
    if key in _DERIVED:
        return bool(value == beside.get(_DERIVED[key]))
    return key in _CONSTANT and bool(value == _CONSTANT[key])


def without_defaults(tree: Json) -> Json:
    """A pod template, or a part of it, without what the API server would add all the same; in doubt a field stays."""
    return {
        key: value if key in _USERS_KEYS else _bare(value)
        for key, value in tree.items()
        if key not in _WITH_DEFAULTS or not _is_added(key, value, tree)
    }


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return without_defaults(value)
    return [_bare(each) for each in value] if isinstance(value, list) else value


def _is_added(key: str, value: Any, beside: Json) -> bool:
    if key in _OF_PODS and "containers" not in beside:
        return False
    # a default in the network of the host alone
    return key != "hostPort" and is_default(key, value, beside)


def _pull_policy(image: str) -> str:
    tag = image.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if "@" in image or tag not in ("", "latest") else "Always"
