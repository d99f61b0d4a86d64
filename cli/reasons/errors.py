"""Reasons that are errors: what the API server, the network or a data plane has refused."""

from collections.abc import Mapping

from cli.reasons.reason import LOOK_AT_PD, NOTHING, TRANSIENT, Reason


def _kubernetes(means: str, you: str = "If this persists: look at the API server and at the operator's log.") -> Reason:
    return Reason(means, "It retries the stage; the others continue.", you)


_PERMISSIONS = (
    "Compare the operator's permissions with manifests/operator/rbac-cluster.yaml; the message names verb and resource."
)

_CREDENTIAL = (
    "Look at the operator's log: the token of its ServiceAccount, or the credential of its kubeconfig, is missing or "
    "has expired."
)

ERRORS: Mapping[str, Reason] = {
    "ApiError": _kubernetes("The API server, or a component, refused a request. The message contains its answer."),
    "BadRequest": _kubernetes("The API server rejected a request as malformed."),
    "Unauthorized": _kubernetes("The API server does not accept the operator's credential.", _CREDENTIAL),
    "Forbidden": _kubernetes(
        "The operator lacks a permission, or a policy of the cluster, such as a quota or an admission webhook, refuses "
        "what it writes. The message says which.",
        f"If it is a permission: {_PERMISSIONS[0].lower()}{_PERMISSIONS[1:]} If it is a policy: change the spec, or "
        "that. Until then the pods are looked after as they run.",
    ),
    "NotFound": _kubernetes("A required object is missing. The message names it."),
    "MethodNotAllowed": _kubernetes("The API server does not support a verb on a resource."),
    "AlreadyExists": _kubernetes(
        "An object of the required name exists already.",
        "If this persists: find out who owns it; delete or rename it.",
    ),
    "Expired": _kubernetes("A list had become too old to be continued.", TRANSIENT),
    "Invalid": _kubernetes(
        "The API server rejected an object. The message names the fields.",
        "Correct the fields in the spec that the message names; quotas and admission webhooks may be the cause, too.",
    ),
    "TooManyRequests": _kubernetes("The API server is overloaded.", "Find out which client overloads it."),
    "InternalError": _kubernetes(
        "The API server, or a webhook that it calls, failed. If the message says `internal error`, the operator itself "
        "has a defect, and the message names the exception.",
        "If this persists: report a defect of the operator together with the stack trace in its log; for the API "
        "server, look at its log and at the logs of its webhooks.",
    ),
    "ServerTimeout": _kubernetes("The API server timed out, perhaps while waiting for etcd."),
    "TransportError": _kubernetes("A request to the API server got no answer."),
    "ConnectionRefused": _kubernetes("No server is listening at the API server's address."),
    "ConnectionLost": _kubernetes("The connection to the API server was closed before its answer arrived."),
    "RequestTimeout": _kubernetes("The API server did not answer in time."),
    "AnswerRefused": _kubernetes("An answer exceeds the size that the operator reads, or is encoded."),
    "TlsError": _kubernetes("The TLS handshake with the API server failed."),
    "CredentialMissing": _kubernetes("The operator could not obtain its credential.", _CREDENTIAL),
    "TransportClosed": _kubernetes("The operator is shutting down.", NOTHING),
    "ForeignOwner": Reason(
        "An object of the required name belongs to another owner. The message names both. If that owner is a "
        "TidbCluster of the same name, it was deleted, and Kubernetes is about to delete what it has left.",
        "It leaves that object alone. A component that has a StatefulSet already is scaled, and its lost "
        "pods are replaced. Everything else continues within half a minute after the object has changed.",
        "Delete or rename that object, or the TidbCluster. An object without a controller is adopted when its "
        "`app.kubernetes.io/` labels match the component.",
    ),
    "RemoteError": _kubernetes("A call to a service other than the API server failed. The message names it."),
    "DataPlaneError": _kubernetes("A call to PD, TiKV or TiDB failed.", LOOK_AT_PD),
    "Unavailable": _kubernetes("PD, TiKV or TiDB did not answer. The message names the address.", LOOK_AT_PD),
    "NotInCluster": _kubernetes(
        "A server announces an address that does not belong to its cluster. The operator does not connect to it.",
        "The message names the address: look who announced it, and whether it should be a member of this cluster.",
    ),
    "BadTlsMaterial": _kubernetes(
        "The Secret with the operator's client certificate cannot be used.",
        "See `BadTLS`.",
    ),
    "MalformedAnswer": _kubernetes(
        "PD, TiKV or TiDB answered with something that this version does not understand.",
        "Compare the version of the component with the versions that the operator supports, and report it.",
    ),
}
