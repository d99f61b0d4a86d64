"""Reasons that are errors: a request that the API server, the network or a data plane refused or lost."""

from collections.abc import Mapping

from cli.reasons.reason import LOOK_AT_PD, NOTHING, TRANSIENT, Reason


def _kubernetes(means: str, you: str = "If this persists: look at the API server and at the operator's log.") -> Reason:
    return Reason(means, "It retries the stage; the others continue.", you)


_CREDENTIAL = (
    "Look at the operator's log: the token of its ServiceAccount, or the credential of its kubeconfig, is missing or "
    "has expired."
)

ERRORS: Mapping[str, Reason] = {
    "ApiError": _kubernetes("The API server, or a component, refused a request. The message contains its answer."),
    "BadRequest": _kubernetes("The API server rejected a request as malformed."),
    "Unauthorized": _kubernetes("The API server does not accept the operator's credential.", _CREDENTIAL),
    "Forbidden": _kubernetes(
        "The operator lacks a permission, or a policy, such as a quota or an admission webhook, rejects its write. The "
        "message says which. The operator still looks after the running pods.",
        "If it lacks a permission, compare its rights with manifests/operator/rbac-cluster.yaml; the message names "
        "verb and resource. If a policy rejects the write, change the spec or the policy.",
    ),
    "NotFound": _kubernetes("A required object is missing. The message names it."),
    "MethodNotAllowed": _kubernetes("The API server does not support a verb on a resource."),
    "AlreadyExists": _kubernetes(
        "An object of the required name exists already.",
        "If this persists: find out who owns it; delete or rename it.",
    ),
    "Expired": _kubernetes("A list took so long that the API server forgot its version.", TRANSIENT),
    "Invalid": _kubernetes(
        "The API server rejected an object. The message names the fields.",
        "Correct these fields in the spec. A quota or an admission webhook may be the cause, too.",
    ),
    "TooManyRequests": _kubernetes("The API server is overloaded.", "Find out which client overloads it."),
    "InternalError": _kubernetes(
        "The API server, or a webhook that it calls, failed. If the message says `internal error`, the operator itself "
        "has a defect, and the message names the exception.",
        "If this persists: read the logs of the API server and its webhooks. Report a defect of the operator with the "
        "stack trace in its log.",
    ),
    "ServerTimeout": _kubernetes("The API server timed out, perhaps while waiting for etcd."),
    "TransportError": _kubernetes("A request to the API server got no answer."),
    "ConnectionRefused": _kubernetes("No server is listening at the API server's address."),
    "ConnectionLost": _kubernetes("The API server's connection closed before its answer arrived."),
    "RequestTimeout": _kubernetes("The API server did not answer in time."),
    "AnswerRefused": _kubernetes("An answer is larger than the operator reads, or compressed."),
    "TlsError": _kubernetes("The TLS handshake with the API server failed."),
    "CredentialMissing": _kubernetes("The operator could not obtain its credential.", _CREDENTIAL),
    "TransportClosed": _kubernetes("The operator is shutting down.", NOTHING),
    "ForeignOwner": Reason(
        "An object of the required name belongs to another owner. The message names both. If that owner is a "
        "TidbCluster of the same name, the user deleted that TidbCluster, and Kubernetes is about to delete the "
        "object.",
        "It leaves the object alone. It still scales a component that has a StatefulSet, and replaces its lost pods. "
        "The rest continues within half a minute after the object has changed.",
        "Delete or rename the object or the TidbCluster. The operator adopts an object without a controller whose "
        "`app.kubernetes.io/` labels match the component.",
    ),
    "RemoteError": _kubernetes("A call to a service other than the API server failed. The message names it."),
    "DataPlaneError": _kubernetes("A call to PD, TiKV or TiDB failed.", LOOK_AT_PD),
    "Unavailable": _kubernetes("PD, TiKV or TiDB did not answer. The message names the address.", LOOK_AT_PD),
    "NotInCluster": _kubernetes(
        "A server announces an address outside its cluster. The operator does not connect to it.",
        "Find out who announced the address in the message, and whether it should be a member of this cluster.",
    ),
    "BadTlsMaterial": _kubernetes(
        "The Secret with the operator's client certificate cannot be used.",
        "See `BadTLS`.",
    ),
    "MalformedAnswer": _kubernetes(
        "The operator does not understand an answer of PD, TiKV or TiDB.",
        "Check that the operator supports the version of the component, and report the answer.",
    ),
}
