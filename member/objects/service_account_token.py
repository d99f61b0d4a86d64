"""The token of a pod's service account, where Kubernetes does not mount it by itself (objects.md 3.3)."""

from kube.objects import Json
from member.objects.volumes import mount

_LIFETIME = 3607
"""Seconds; the value Kubernetes itself uses, one above an hour so that it shows who asked."""
_NAME = "kube-api-access"

TOKEN_MOUNT = mount(_NAME, "/var/run/secrets/kubernetes.io/serviceaccount", read_only=True)
"""Where programs look for it."""


def token_volume() -> Json:
    """What Kubernetes would mount by itself: token, authority and namespace."""
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources: list[Json] = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": _LIFETIME}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": _NAME, "projected": {"sources": sources}}
