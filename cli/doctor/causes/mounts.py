"""Scheduled pods whose containers cannot be created because a mount or a source of environment variables is missing."""

from collections.abc import Iterator

from cli.doctor.causes.texts import Message, Text, causes
from cli.doctor.facts import Facts, is_deleted, pod, pod_model
from cli.doctor.finding import Sign
from member.observed.pod import OF_CONFIGURATION
from member.observed.troubles import newest_complaint


def _mount_messages(facts: Facts) -> Iterator[Message]:
    """The newest complaint about each scheduled pod that has not started, and what its containers wait for."""
    for each in facts.pods:
        model = pod_model(each)
        if not model.spec.node_name or is_deleted(each):
            continue
        statuses = (*model.status.init_container_statuses, *model.status.container_statuses)
        waiting = [state for container in statuses if (state := container.state.waiting)]
        configured = [state.message for state in waiting if state.reason in OF_CONFIGURATION]
        complaint = newest_complaint(facts.events(each, "Pod", "FailedMount", "FailedAttachVolume", "FailedMapVolume"))
        if model.status.phase == "Pending" and not model.has_run and complaint:
            configured.append(complaint.message)
        if configured:
            yield Message(each, pod(each), "; ".join(dict.fromkeys(configured)))


_TEXTS = (
    Text(
        "SecretMissing",
        r'secret "([^"]+)" not found',
        "Create it: `tidb-operator certs` makes those with certificates; or correct the field that names it.",
        lambda _, message, match: Sign(message.object, "waits for a Secret that does not exist", "Secret", match[1]),
    ),
    Text(
        "ConfigMapMissing",
        r'configmap "([^"]+)" not found',
        "Create it, or correct `additionalVolumes`, `envFrom` or `env`.",
        lambda _, message, match: Sign(
            message.object, "waits for a ConfigMap that does not exist", "ConfigMap", match[1]
        ),
    ),
    Text(
        "KeyMissing",
        r"couldn't find key (\S+) in (.*)|references non-existent (?:config|secret) key: (\S+)",
        "Add the key.",
        lambda _, message, match: Sign(message.object, match[0], "key", match[1] or match[3]),
    ),
    Text(
        "VolumeAttachedElsewhere",
        r"Multi-Attach error.*",
        "Wait for the detachment (minutes); if that node is gone for good, delete its Node object. "
        "Never force it while the node may write.",
        lambda _, message, match: Sign(message.object, match[0]),
    ),
)

_OTHER = Text(
    "NotMounted",
    r"object \S+ not registered|failed to sync (?:configmap|secret) cache",
    "`kubectl describe pod` shows the whole message; look at the log of the CSI driver on the node.",
)

CAUSES = causes(_mount_messages, _TEXTS, _OTHER)
