"""The explanation of a reason, and phrases that several share. Texts are Markdown for an engineer on call."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """`means` explains the reason, `meanwhile` says what the operator does, and `you` what the user can do."""

    means: str
    meanwhile: str
    you: str


NOTHING = "Nothing."
TRANSIENT = "Nothing: this is transient."
NOTHING_YET = "Nothing. After ten minutes without progress the reason becomes `RollingUpdateStuck`."
AT_ONCE = "It retries in less than a second."
WITH_THE_CACHE = "It retries in less than a second, then with increasing delays, and as soon as its cache is updated."
LOOK_AT_PD = (
    "`kubectl get pods -l app.kubernetes.io/component=pd`, then `kubectl logs` of the pods that are not Ready. If all "
    "of them are Ready, the operator cannot reach PD: check NetworkPolicies, DNS, and the operator's log."
)
LOOK_AT_PODS = "`kubectl describe pod` of the pods that the message names; their events say what is missing."
LOOK_AT_COMPONENT = "`kubectl tidb status NAME` shows what the other component waits for."
