"""Pods without a node, with the reasons of kube-scheduler and the operator's extender
(scheduler-deployment.md 13.1).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType

from cli.doctor.causes.texts import Message, Text, causes
from cli.doctor.facts import Facts, component_of, field_of, is_deleted, pod
from cli.doctor.finding import Cause, Sign
from kube.objects import Json, condition_of

_PATIENCE = timedelta(minutes=1)
"""How long a pod may be unknown to every scheduler."""

_OF_NODES = re.compile(r"^\d+/(?P<all>\d+) nodes are available: (?P<why>.*)", re.DOTALL)
_OF_PREEMPTION = re.compile(r"[.,;]? *(?:no new claims to deallocate, *)?preemption: .*", re.DOTALL)

_DEFAULT = "default-scheduler"


def scheduling_messages(facts: Facts) -> Iterator[Message]:
    """Why pods have no node; messages about preemption repeat this and are omitted."""
    for each in facts.pods:
        condition = condition_of((each.get("status") or {}).get("conditions") or (), "PodScheduled")
        if condition.get("status") == "False" and not is_deleted(each):
            text = _OF_PREEMPTION.sub("", str(condition.get("message") or condition.get("reason") or ""))
            yield Message(each, pod(each), text)


def _refused(
    what: str, path: str, value: Callable[[Facts, Json], str] = lambda _, __: ""
) -> Callable[[Facts, Message, re.Match[str]], Sign]:
    """The sign of a rejection by some nodes: their number, and the field of the component with the
    excessive request.
    """

    def sign(facts: Facts, message: Message, match: re.Match[str]) -> Sign:
        found, counted = _OF_NODES.match(message.text), re.search(r"(\d+) [^,:]*$", message.text[: match.start()])
        nodes = f"{counted[1]} of {found['all']} nodes" if found and counted else "nodes"
        field = field_of(facts, message.tree, path) if path else ""
        return Sign(message.object, what.format(nodes=nodes, match=match[0]), field, value(facts, message.tree))

    return sign


def _requested(resource: str) -> Callable[[Facts, Json], str]:
    def value(facts: Facts, tree: Json) -> str:
        """The user's spelling: the API server may normalise a quantity."""
        section = facts.spec.get(component_of(tree)) or {}
        if written := (section.get("requests") or section.get("limits") or {}).get(resource):
            return str(written)
        asked = (
            (container.get("resources") or {}).get("requests") or {}
            for container in tree["spec"].get("containers") or ()
        )
        return " + ".join(str(each[resource]) for each in asked if resource in each)

    return value


def _taints(facts: Facts, _: Json) -> str:
    found = (
        f"{node}: {taint['key']}{'=' if taint.get('value') else ''}{taint.get('value', '')}:{taint['effect']}"
        for node, tree in facts.nodes.items()
        for taint in (tree.get("spec") or {}).get("taints") or ()
    )
    return ", ".join(found)


def _cordoned(facts: Facts, message: Message, match: re.Match[str]) -> Sign:
    named = ", ".join(name for name, tree in facts.nodes.items() if (tree.get("spec") or {}).get("unschedulable"))
    sign = _refused("{nodes} are cordoned", "")(facts, message, match)
    return replace(sign, field="Node.spec.unschedulable", value=named)


def _wanted(_: Facts, tree: Json) -> str:
    selector: Mapping[str, str] = tree["spec"].get("nodeSelector") or MappingProxyType({})
    return ", ".join(f"{key}={value}" for key, value in selector.items())


def _extender(_: Facts, message: Message, match: re.Match[str]) -> Sign:
    return Sign(message.object, f"our scheduler refuses the nodes: {match[0]}")


_LESS = "Lower the request, or add nodes that are large enough."

_TEXTS = (
    Text(
        "InsufficientCPU",
        r"Insufficient cpu",
        _LESS,
        _refused("{nodes} have too little free CPU", "requests.cpu", _requested("cpu")),
    ),
    Text(
        "InsufficientMemory",
        r"Insufficient memory",
        _LESS,
        _refused("{nodes} have too little free memory", "requests.memory", _requested("memory")),
    ),
    Text(
        "InsufficientResource",
        r"Insufficient (?!cpu|memory)\S+|did not have enough free storage|exceed max volume count",
        _LESS,
        _refused("{nodes}: {match}", "requests"),
    ),
    Text(
        "TooManyPods",
        r"Too many pods",
        "Add nodes, or raise `maxPods` of the kubelets.",
        _refused("{nodes} run as many pods as they may", ""),
    ),
    Text(
        "UntoleratedTaint",
        r"untolerated taint|had taints that the pod didn't tolerate",
        "Add a toleration, or remove the taint: `kubectl taint nodes NODE KEY-`.",
        _refused("{nodes} have a taint that it does not tolerate", "tolerations", _taints),
    ),
    Text(
        "NodeCordoned",
        r"were unschedulable",
        "`kubectl uncordon NODE`, or add another node.",
        _cordoned,
    ),
    Text(
        "NoNodeMatches",
        r"didn't match Pod's node affinity/selector|didn't match the requested node name",
        "Correct `nodeSelector` and `affinity`, or label nodes: `kubectl label nodes NODE KEY=VALUE`.",
        _refused("{nodes} do not match its node selector or affinity", "nodeSelector", _wanted),
    ),
    Text(
        "AntiAffinity",
        r"anti-affinity rules|didn't match pod affinity rules",
        "Add nodes, have fewer replicas, or make the rule `preferred`.",
        _refused("{nodes} do not satisfy affinity between pods", "affinity"),
    ),
    Text(
        "SpreadImpossible",
        r"pod topology spread constraints",
        "Add nodes in other topologies, label them, or relax the constraint (`maxSkew`, `ScheduleAnyway`).",
        _refused("{nodes} do not satisfy the spread constraints", "topologySpreadConstraints"),
    ),
    Text(
        "TopologyFull",
        r"(?:unable to schedule to topology: |\S+ has \d+ \w+ pods, ).*|the node has no label \S+",
        "Add nodes in other topologies; see the annotation `pingcap.com/ha-topology-key` and docs/scheduling.md.",
        _extender,
    ),
    Text(
        "WaitingForOtherPod",
        r"waiting for (?:Pod|PersistentVolumeClaim) \S+.*",
        "Look at the pod that the message names.",
        _extender,
    ),
    Text(
        "VolumeElsewhere",
        r"volume node affinity conflict|didn't match PersistentVolume's node affinity|no available volume zone",
        "Make room on the node of the volume. If it is gone for good, replace the volume: docs/operations.md.",
        _refused("{nodes} cannot reach its volume", ""),
    ),
    Text(
        "NoVolume",
        r"didn't find available persistent volumes to bind",
        "Add volumes: mount disks into the discovery directory of the local volume provisioner.",
        _refused("{nodes} have no free volume for it", ""),
    ),
    Text(
        "VolumeGone",
        r"bound to non-existent pv|bound to non-existent persistentvolume|persistentvolume \S+ not found",
        "What it held is lost. If other replicas have the data, delete claim and pod; else restore a backup.",
        _refused("its claim is bound to a volume that does not exist", ""),
    ),
    Text(
        "ClaimMissing",
        r'persistentvolumeclaim "?([^" ]+)"? (?:not found|is being deleted)',
        "Delete the pod: its StatefulSet recreates both.",
        lambda _, message, match: Sign(message.object, match[0]),
    ),
    Text(
        "HostPortTaken",
        r"didn't have free ports",
        "Add nodes, or set `hostNetwork: false`.",
        _refused("ports of the host are taken on {nodes}", "hostNetwork"),
    ),
)

_OTHER = Text(
    "Unschedulable",
    # the claim or the node itself has its own finding
    r"unbound immediate PersistentVolumeClaims|node\(s\) were not ready|SchedulingGated",
    "`kubectl describe pod` of the pod shows all that the scheduler says.",
)


def _without_scheduler(facts: Facts) -> Iterator[Sign]:
    for each in facts.pods:
        status, spec = each.get("status") or {}, each["spec"]
        named = spec.get("schedulerName") or _DEFAULT
        scheduled = condition_of(status.get("conditions") or (), "PodScheduled")
        waits = facts.lasts(each["metadata"].get("creationTimestamp"), _PATIENCE)
        if not spec.get("nodeName") and not scheduled and waits and not is_deleted(each):
            message = f"no scheduler of the name {named} has looked at it"
            yield Sign(pod(each), message, field_of(facts, each, "schedulerName"), named)


CAUSES = (
    Cause(
        "SchedulerMissing",
        "Install it, or leave `schedulerName` out for Kubernetes' own.",
        _without_scheduler,
    ),
    *causes(scheduling_messages, _TEXTS, _OTHER),
)
