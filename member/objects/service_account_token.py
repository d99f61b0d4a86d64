"""The token of a pod's service account, for pods in which Kubernetes does not mount it (objects.md 3.3)."""

from kube.objects import Json
from member.objects.volumes import mount

_LIFETIME = 3607
"""Seconds, as in Kubernetes: slightly above an hour, which identifies the requester."""
_NAME = "kube-api-access"

TOKEN_MOUNT = mount(_NAME, "/var/run/secrets/kubernetes.io/serviceaccount", read_only=True)
"""The path where programs expect the token."""


def token_volume() -> Json:
    """The volume that Kubernetes would mount by default: token, CA and namespace."""
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources: list[Json] = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": _LIFETIME}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": _NAME, "projected": {"sources": sources}}
