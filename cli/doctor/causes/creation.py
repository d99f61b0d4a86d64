"""Pods and claims that the API server does not let a StatefulSet create; only events show the reason."""

from collections.abc import Iterator
from datetime import timedelta

from cli.doctor.causes.texts import Message, Text, causes
from cli.doctor.facts import Facts, field_of, is_deleted, name_of
from cli.doctor.finding import Cause, Sign
from member.objects.stateful_set import is_advanced

_PATIENCE = timedelta(minutes=1)


def _creation_rejections(facts: Facts) -> Iterator[Message]:
    """The newest rejection for each StatefulSet that lacks pods."""
    for stateful_set in facts.stateful_sets:
        lacks = (stateful_set.get("status") or {}).get("replicas", 0) < stateful_set["spec"].get("replicas", 1)
        refusals = [
            event for event in facts.events(stateful_set, "StatefulSet", "FailedCreate") if event.is_recent(facts.now)
        ]
        if lacks and refusals and not is_deleted(stateful_set):
            yield Message(stateful_set, f"StatefulSet {name_of(stateful_set)}", refusals[-1].message.strip())


_TEXTS = (
    Text(
        "QuotaExceeded",
        r"exceeded quota: ([^,\s]+).*",
        "Raise the quota, or ask for less: `kubectl describe resourcequota`.",
        lambda _, message, match: Sign(message.object, match[0], "ResourceQuota", match[1]),
    ),
    Text(
        "QuotaNeedsRequests",
        r"failed quota: ([^:\s]+): must specify.*",
        "Set requests and limits of the component.",
        lambda facts, message, match: Sign(message.object, match[0], field_of(facts, message.tree, "requests"), ""),
    ),
    Text(
        "LimitRangeRefuses",
        r"(?:maximum|minimum) \S+ usage per .*|max limit to request ratio.*",
        "Change them, or the LimitRange: `kubectl describe limitrange`.",
        lambda facts, message, match: Sign(message.object, match[0], field_of(facts, message.tree, "limits")),
    ),
    Text(
        "PriorityClassMissing",
        r"no PriorityClass with name (\S+) was found",
        "Create it, or correct `priorityClassName`.",
        lambda facts, message, match: Sign(
            message.object, match[0], field_of(facts, message.tree, "priorityClassName"), match[1]
        ),
    ),
    Text(
        "PodSecurityRefuses",
        r"violates PodSecurity .*",
        "Set `podSecurityContext` as it asks, or enforce another level on the namespace (docs/security.md).",
        lambda facts, message, match: Sign(
            message.object, match[0], field_of(facts, message.tree, "podSecurityContext")
        ),
    ),
    Text(
        "WebhookUnreachable",
        r'failed calling webhook "([^"]+)".*',
        "Repair the server of the webhook, or delete its WebhookConfiguration.",
        lambda _, message, match: Sign(message.object, match[0], "webhook", match[1]),
    ),
    Text(
        "AdmissionRefused",
        r'(?:admission webhook "([^"]+)" denied|ValidatingAdmissionPolicy \'([^\']+)\').*',
        "Do as its message asks, or exempt the namespace from it.",
        lambda _, message, match: Sign(message.object, match[0], "admission", match[1] or match[2] or ""),
    ),
    Text(
        "ServiceAccountMissing",
        r'error looking up service account.*serviceaccount "([^"]+)" not found',
        "Create it, or correct `serviceAccount`.",
        lambda facts, message, match: Sign(
            message.object, match[0], field_of(facts, message.tree, "serviceAccount"), match[1]
        ),
    ),
)

_OTHER = Text(
    "PodNotCreated",
    "",
    "`kubectl describe statefulset` shows all that it says.",
)


def _ignored_stateful_sets(facts: Facts) -> Iterator[Sign]:
    """Advanced StatefulSets that their controller has not noticed; a rejection would explain why it reports nothing."""
    for stateful_set in facts.stateful_sets:
        status, created = stateful_set.get("status") or {}, stateful_set["metadata"].get("creationTimestamp")
        is_noticed = not is_advanced(stateful_set) or "observedGeneration" in status
        if is_noticed or facts.events(stateful_set, "StatefulSet", "FailedCreate"):
            continue
        if facts.lasts(created, _PATIENCE):
            message = "the controller of Advanced StatefulSets has not noticed it, and creates no pods"
            yield Sign(f"StatefulSet {name_of(stateful_set)}", message, "status.observedGeneration")


CAUSES = (
    *causes(_creation_rejections, _TEXTS, _OTHER),
    Cause(
        "AdvancedStatefulSetsIgnored",
        "Start it (`advancedStatefulset.create` in the chart), or read in its log why it fails.",
        _ignored_stateful_sets,
    ),
)
