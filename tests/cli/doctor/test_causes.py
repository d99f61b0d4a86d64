"""Causes as pure functions of facts: those that no sandbox produces, and the limits between right and wrong (13.1,
13.2)."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apis.crd import TIDB_CLUSTER, definition
from apis.times import stamp
from cli.doctor.causes import availability
from cli.doctor.diagnosis import OF_ANY_CLUSTER, OF_CLUSTER, diagnose
from cli.doctor.facts import POD_DISRUPTION_BUDGETS, Facts
from cli.doctor.finding import Finding, Severity
from kube.objects import Json
from kube.resources import (
    BACKUP_SCHEDULES,
    BACKUPS,
    COMPACT_BACKUPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESTORES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    Resource,
)
from kube.sharding import shard_of
from member.availability import REASONS
from member.memory import Finding as CertificateFinding

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONG_AGO = stamp(NOW - timedelta(hours=1))
JUST_NOW = stamp(NOW - timedelta(seconds=20))

LABELS = {
    "app.kubernetes.io/name": "tidb-cluster",
    "app.kubernetes.io/instance": "basic",
    "app.kubernetes.io/managed-by": "tidb-operator",
}
LABELS |= {"app.kubernetes.io/component": "tikv"}
_PART: Json = {"baseImage": "pingcap/any", "replicas": 3, "requests": {"storage": "1Gi"}}
SPEC: Json = {"version": "v8.5.2", "pd": _PART, "tikv": _PART}

_NODES_SAY = "0/3 nodes are available: {}. preemption: 0/3 nodes are available: 3 Preemption is not helpful."


def of(name: str, component: str = "tikv", **more: Any) -> Json:
    """An object of the cluster."""
    metadata: Json = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": LONG_AGO}
    return {"metadata": metadata | {"labels": LABELS | {"app.kubernetes.io/component": component}}} | more


def facts(status: Json | None = None, spec: Json | None = None, **listed: Any) -> Facts:
    """The objects of a cluster `basic`; keys are the plurals of resources."""
    known = {each.plural: each for each in _RESOURCES}
    cluster = {"metadata": {"name": "basic", "namespace": "default", "uid": "u", "creationTimestamp": JUST_NOW}}
    return Facts(
        now=NOW,
        namespace="default",
        cluster=cluster | {"spec": spec or SPEC, "status": status or {"clusterID": "1"}},
        listed={known[plural]: objects for plural, objects in listed.items()},
    )


_RESOURCES: tuple[Resource, ...] = (
    BACKUP_SCHEDULES,
    BACKUPS,
    COMPACT_BACKUPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    EVENTS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    RESTORES,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)


def found(known: Facts) -> Mapping[str, Finding]:
    """The findings, by reason."""
    return {each.reason: each for each in diagnose(known, OF_CLUSTER)}


def unscheduled(message: str) -> Json:
    """A pod without a node."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return of("basic-tikv-0", spec={"containers": []}, status={"phase": "Pending", "conditions": [condition]})


def pod(name: str = "basic-tikv-0", node: str = "node-0", ready: bool = True, **container: Any) -> Json:
    """A pod on a node, with one container."""
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": LONG_AGO}
    status = {"name": "tikv", "state": {"running": {}}} | container
    spec = {"nodeName": node, "containers": [{"name": "tikv", "image": "pingcap/tikv:v8.5.2"}]}
    return of(name, spec=spec, status={"phase": "Running", "conditions": [condition], "containerStatuses": [status]})


def waiting(reason: str, message: str = "", **more: Any) -> Json:
    """A pod whose container waits."""
    tree = pod(ready=False, state={"waiting": {"reason": reason, "message": message}}, **more)
    tree["status"]["phase"] = "Pending"
    return tree


def event(kind: str, name: str, reason: str, message: str, at: str = JUST_NOW) -> Json:
    """A warning about an object."""
    return {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": kind, "name": name, "uid": name},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }


def node(name: str = "node-0", *conditions: str, **spec: Any) -> Json:
    """A node that is Ready, and in some conditions more."""
    held = [{"type": kind, "status": "True"} for kind in ("Ready", *conditions)]
    return {"metadata": {"name": name}, "spec": spec, "status": {"conditions": held}}


def claim(phase: str, **spec: Any) -> Json:
    """The claim of a pod."""
    return of("tikv-basic-tikv-0", spec=spec, status={"phase": phase})


# Pods without a node: the words of kube-scheduler, of several versions, and of our extender

_REFUSALS = [
    ("1 Insufficient cpu, 2 node(s) had untolerated taint {a: b}", {"InsufficientCPU", "UntoleratedTaint"}),
    ("3 Insufficient memory", {"InsufficientMemory"}),
    ("3 Insufficient ephemeral-storage", {"InsufficientResource"}),
    ("3 node(s) did not have enough free storage", {"InsufficientResource"}),
    ("3 Too many pods", {"TooManyPods"}),
    ("3 node(s) had untolerated taint(s)", {"UntoleratedTaint"}),
    ("3 node(s) had taints that the pod didn't tolerate", {"UntoleratedTaint"}),
    ("3 node(s) were unschedulable", {"NodeCordoned"}),
    ("3 node(s) didn't match Pod's node affinity/selector", {"NoNodeMatches"}),
    ("3 node(s) didn't match pod anti-affinity rules", {"AntiAffinity"}),
    ("3 node(s) didn't match pod topology spread constraints (missing required label)", {"SpreadImpossible"}),
    ("3 a has 1 pd pods, max pods per topology: 1", {"TopologyFull"}),
    ("3 unable to schedule to topology: a (1 pd pods), max pods per topology: 1", {"TopologyFull"}),
    ("3 waiting for Pod default/basic-pd-0 scheduling", {"WaitingForOtherPod"}),
    ("3 node(s) had volume node affinity conflict", {"VolumeElsewhere"}),
    ("3 node(s) didn't match PersistentVolume's node affinity", {"VolumeElsewhere"}),
    ("3 node(s) didn't find available persistent volumes to bind", {"NoVolume"}),
    ("3 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", {"VolumeGone"}),
    ("3 node(s) didn't have free ports for the requested pod ports", {"HostPortTaken"}),
    ("3 node(s) are made of cheese", {"Unschedulable"}),
]


@pytest.mark.parametrize(("said", "expected"), _REFUSALS, ids=[said for said, _ in _REFUSALS])
@pytest.mark.rule("13.1")
def test_recognises_messages_of_schedulers(said: str, expected: set[str]) -> None:
    assert expected == found(facts(pods=[unscheduled(_NODES_SAY.format(said))])).keys()


@pytest.mark.rule("13.1")
def test_a_scheduling_failure_counts_nodes_and_names_the_users_request() -> None:
    spec = SPEC | {"tikv": _PART | {"requests": {"cpu": "32", "storage": "1Gi"}}}
    (finding,) = diagnose(facts(spec=spec, pods=[unscheduled(_NODES_SAY.format("2 Insufficient cpu"))]), OF_CLUSTER)
    assert ("2 of 3 nodes have too little free CPU", "spec.tikv.requests.cpu", "32") == (
        finding.message,
        finding.field,
        finding.value,
    )


@pytest.mark.rule("13.1")
def test_counts_nodes_in_every_wording_of_the_scheduler() -> None:
    said = _NODES_SAY.format("1 Too many pods, 2 node(s) had untolerated taint(s)")
    findings = found(facts(pods=[unscheduled(said)]))
    assert "1 of 3 nodes run as many pods as they may" == findings["TooManyPods"].message
    assert "2 of 3 nodes have a taint that it does not tolerate" == findings["UntoleratedTaint"].message


@pytest.mark.rule("13.1")
def test_recognises_scheduler_messages_without_a_count_of_nodes() -> None:
    assert {"ClaimMissing"} == found(facts(pods=[unscheduled('persistentvolumeclaim "a" not found')])).keys()
    quiet = facts(pods=[unscheduled("pod has unbound immediate PersistentVolumeClaims")])
    assert {} == found(quiet)


@pytest.mark.rule("13.1")
def test_a_taint_is_named_with_its_node() -> None:
    tainted = node("node-1", taints=[{"key": "dedicated", "value": "db", "effect": "NoSchedule"}])
    said = _NODES_SAY.format("1 node(s) had untolerated taint(s)")
    finding = found(facts(pods=[unscheduled(said)], nodes=[node(), tainted]))["UntoleratedTaint"]
    assert ("spec.tikv.tolerations", "node-1: dedicated=db:NoSchedule") == (finding.field, finding.value)


@pytest.mark.rule("13.1")
def test_cordoned_nodes_are_named() -> None:
    said = unscheduled(_NODES_SAY.format("1 node(s) were unschedulable"))
    finding = found(facts(pods=[said], nodes=[node(), node("node-1") | {"spec": {"unschedulable": True}}]))[
        "NodeCordoned"
    ]
    assert ("1 of 3 nodes are cordoned", "node-1") == (finding.message, finding.value)


@pytest.mark.rule("13.1")
def test_a_terminating_pod_is_not_reported_as_unschedulable() -> None:
    tree = unscheduled(_NODES_SAY.format("3 Insufficient cpu"))
    tree["metadata"]["deletionTimestamp"] = JUST_NOW
    assert {} == found(facts(pods=[tree]))


# Pods that are not made

_CREATION = "Create Pod basic-tikv-0 in StatefulSet basic-tikv failed error: "


def refused(why: str, at: str = JUST_NOW, made: int = 0) -> Facts:
    """A StatefulSet that lacks pods."""
    lacking = of("basic-tikv", spec={"replicas": 1}, status={"replicas": made})
    return facts(statefulsets=[lacking], events=[event("StatefulSet", "basic-tikv", "FailedCreate", why, at)])


@pytest.mark.parametrize(
    ("why", "reason", "value"),
    [
        ('pods "a" is forbidden: exceeded quota: small, requested: pods=1', "QuotaExceeded", "small"),
        ('pods "a" is forbidden: failed quota: q: must specify limits.cpu for: pd', "QuotaNeedsRequests", ""),
        (
            'pods "a" is forbidden: minimum memory usage per Pod is 1Gi.  No request',
            "LimitRangeRefuses",
            "",
        ),
        ('pods "a" is forbidden: violates PodSecurity "restricted:latest": b', "PodSecurityRefuses", ""),
        ('admission webhook "a.example.com" denied the request: no', "AdmissionRefused", "a.example.com"),
        ("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no PD here", "AdmissionRefused", "p"),
        ('Internal error occurred: failed calling webhook "w": timeout', "WebhookUnreachable", "w"),
        ("no PriorityClass with name high was found", "PriorityClassMissing", "high"),
        ('error looking up service account a/b: serviceaccount "b" not found', "ServiceAccountMissing", "b"),
        ("something else", "PodNotCreated", ""),
    ],
)
@pytest.mark.rule("13.1")
def test_recognises_what_refuses_the_creation_of_pods(why: str, reason: str, value: str) -> None:
    findings = found(refused(_CREATION + why))
    assert {reason} == findings.keys()
    assert (("StatefulSet basic-tikv",), value) == (findings[reason].objects, findings[reason].value)


@pytest.mark.rule("13.1")
def test_a_refusal_that_is_over_is_not_reported() -> None:
    assert {} == found(refused("exceeded quota: small", at=LONG_AGO))
    assert {} == found(refused("exceeded quota: small", made=1))


# Images, mounts, containers

_CONTAINERD = 'rpc error: code = NotFound desc = failed to pull and unpack image "a": '


@pytest.mark.parametrize(
    ("reason", "said", "expected"),
    [
        ("ErrImagePull", f"{_CONTAINERD}docker.io/a:v9: not found", "ImageNotFound"),
        ("ErrImagePull", "manifest for a:v9 not found: manifest unknown", "ImageNotFound"),
        (
            "ImagePullBackOff",
            f"{_CONTAINERD}no match for platform in manifest: not found",
            "ImageForAnotherArchitecture",
        ),
        ("ErrImagePull", "no matching manifest for linux/arm64/v8 in the list", "ImageForAnotherArchitecture"),
        ("ErrImagePull", "pull access denied, repository does not exist or may require it", "ImageForbidden"),
        ("ErrImagePull", "unexpected status from HEAD request: 401 Unauthorized", "ImageForbidden"),
        ("ErrImagePull", "dial tcp: lookup registry on 10.0.0.10:53: no such host", "RegistryUnreachable"),
        ("ErrImagePull", "429 Too Many Requests - toomanyrequests", "RegistryUnreachable"),
        ("InvalidImageName", "couldn't parse image name", "InvalidImageName"),
        ("ErrImageNeverPull", "Container image is not present with pull policy of Never", "ImageNotPulled"),
    ],
)
@pytest.mark.rule("13.1")
def test_recognises_messages_of_container_runtimes_about_images(reason: str, said: str, expected: str) -> None:
    findings = found(facts(pods=[waiting(reason, said)]))
    assert {expected} == findings.keys()
    assert ("spec.tikv.image", "pingcap/tikv:v8.5.2") == (findings[expected].field, findings[expected].value)


@pytest.mark.rule("13.1")
def test_reads_image_errors_of_older_kubelets_from_events() -> None:
    said = event("Pod", "basic-tikv-0", "Failed", 'Failed to pull image "pingcap/tikv:v8.5.2": not found')
    silent = waiting("ImagePullBackOff", 'Back-off pulling image "pingcap/tikv:v8.5.2"')
    assert {"ImageNotFound"} == found(facts(pods=[silent], events=[said])).keys()
    assert {"ImageNotPulled"} == found(facts(pods=[silent])).keys()


@pytest.mark.parametrize(
    ("reason", "message", "expected"),
    [
        ("FailedMount", 'MountVolume.SetUp failed for volume "a" : secret "b" not found', "SecretMissing"),
        ("FailedMount", 'MountVolume.SetUp failed for volume "a" : configmap "b" not found', "ConfigMapMissing"),
        ("FailedMount", 'for volume "a" : references non-existent secret key: tls.crt', "KeyMissing"),
        (
            "FailedAttachVolume",
            'Multi-Attach error for volume "pvc-1" Volume is in use',
            "VolumeAttachedElsewhere",
        ),
        ("FailedMount", "driver name csi.example.com not found in the list of drivers", "NotMounted"),
    ],
)
@pytest.mark.rule("13.1")
def test_recognises_messages_of_kubelets_about_volumes(reason: str, message: str, expected: str) -> None:
    said = event("Pod", "basic-tikv-0", reason, message)
    creating = waiting("ContainerCreating")
    assert {expected} == found(facts(pods=[creating], events=[said])).keys()
    assert {} == found(facts(pods=[pod()], events=[said]))


@pytest.mark.rule("13.1")
def test_reports_a_missing_key_that_a_variable_needs() -> None:
    tree = waiting("CreateContainerConfigError", "couldn't find key password in Secret default/a")
    assert "password" == found(facts(pods=[tree]))["KeyMissing"].value


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("[FATAL] cluster ID mismatch, local 1 != remote 2", "DataOfAnotherCluster"),
        ("exec /tikv-server: exec format error", "ProgramForAnotherArchitecture"),
        ("IO error: No space left on device", "DiskFull"),
        ("the maximum number of open file descriptors is too small, got 1024", "TooFewFiles"),
        ("invalid configuration", "CrashLoop"),
    ],
)
@pytest.mark.rule("13.1")
def test_the_last_log_lines_give_the_cause_of_a_crash(log: str, expected: str) -> None:
    ended = {"terminated": {"reason": "Error", "exitCode": 1}}
    tree = waiting("CrashLoopBackOff", lastState=ended, restartCount=4)
    known = facts(pods=[tree])
    findings = found(Facts(now=NOW, cluster=known.cluster, listed=known.listed, logs={("basic-tikv-0", "tikv"): log}))
    assert {expected} == findings.keys()
    assert log in findings[expected].message


@pytest.mark.rule("13.1")
def test_reports_an_out_of_memory_kill_until_the_container_runs_again() -> None:
    killed = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    assert {"OutOfMemory"} == found(facts(pods=[waiting("CrashLoopBackOff", lastState=killed)])).keys()
    assert {} == found(facts(pods=[pod(lastState=killed, restartCount=1)]))


@pytest.mark.rule("13.1")
def test_reports_an_evicted_pod() -> None:
    tree = pod(ready=False) | {"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}}
    assert "low on memory" in found(facts(pods=[tree]))["PodFailed"].message


# Claims


def storage_class(name: str, provisioner: str, **more: Any) -> Json:
    """A storage class."""
    return {"metadata": {"name": name}, "provisioner": provisioner} | more


@pytest.mark.parametrize(
    ("spec", "classes", "events", "expected"),
    [
        ({"storageClassName": "a"}, [], [], {"StorageClassMissing"}),
        ({}, [storage_class("a", "p")], [], {"NoDefaultStorageClass"}),
        ({"storageClassName": "a"}, [storage_class("a", "kubernetes.io/no-provisioner")], [], {"NoFreeVolume"}),
        ({"storageClassName": "a"}, [storage_class("a", "csi.example.com")], [], {"ProvisionerSilent"}),
        ({"storageClassName": "a"}, [storage_class("a", "p")], ["out of quota"], {"ProvisioningFailed"}),
        ({"storageClassName": "a"}, [storage_class("a", "p", volumeBindingMode="WaitForFirstConsumer")], [], set()),
        ({"storageClassName": ""}, [], [], set()),
    ],
)
@pytest.mark.rule("13.1")
def test_reports_why_a_claim_has_no_volume(
    spec: Json, classes: list[Json], events: list[str], expected: set[str]
) -> None:
    told = [event("PersistentVolumeClaim", "tikv-basic-tikv-0", "ProvisioningFailed", each) for each in events]
    claims = [claim("Pending", **spec)]
    known = facts(persistentvolumeclaims=claims, storageclasses=classes, events=told, persistentvolumes=[])
    assert expected == found(known).keys()


@pytest.mark.rule("13.1")
def test_counts_only_available_volumes_of_the_class_and_size_as_free() -> None:
    local = storage_class("local", "kubernetes.io/no-provisioner")
    wants = claim("Pending", storageClassName="local", resources={"requests": {"storage": "10Gi"}})

    def volume(size: str, phase: str) -> Json:
        spec = {"storageClassName": "local", "capacity": {"storage": size}}
        return {"metadata": {"name": "v"}, "spec": spec, "status": {"phase": phase}}

    for free, expected in ((volume("9Gi", "Available"), True), (volume("1Ti", "Released"), True)):
        known = facts(persistentvolumeclaims=[wants], storageclasses=[local], persistentvolumes=[free])
        assert expected is ("NoFreeVolume" in found(known))
    known = facts(
        persistentvolumeclaims=[wants], storageclasses=[local], persistentvolumes=[volume("10Gi", "Available")]
    )
    assert {} == found(known)


@pytest.mark.rule("13.1")
def test_a_resource_that_the_user_may_not_list_is_not_reported_as_missing() -> None:
    assert {} == found(facts(persistentvolumeclaims=[claim("Pending", storageClassName="a")]))


@pytest.mark.rule("13.1")
def test_reports_a_lost_claim_and_a_claim_that_cannot_grow() -> None:
    assert "v" == found(facts(persistentvolumeclaims=[claim("Lost", volumeName="v")]))["ClaimLost"].value
    grows = claim("Bound", volumeName="v", resources={"requests": {"storage": "2Gi"}})
    grows["status"]["capacity"] = {"storage": "1Gi"}
    told = event("PersistentVolumeClaim", "tikv-basic-tikv-0", "VolumeResizeFailed", "no")
    assert {"VolumeCannotGrow"} == found(facts(persistentvolumeclaims=[grows], events=[told])).keys()


@pytest.mark.parametrize(
    ("target", "status", "errors", "expected"),
    [
        ("fast", "InProgress", [], set()),
        ("fast", "InProgress", ["quota"], {"VolumeCannotBeModified"}),
        ("fast", "Infeasible", ["iops are out of range"], {"VolumeCannotBeModified"}),
        ("", "Pending", [], {"VolumeCannotBeModified"}),
        # what remains of a change that was taken back
        ("former", "Infeasible", ["iops are out of range"], set()),
    ],
)
def test_reports_a_driver_that_does_not_change_a_volume(
    target: str, status: str, errors: list[str], expected: set[str]
) -> None:
    changes = claim("Bound", volumeAttributesClassName="fast", volumeName="v")
    changes["status"] |= {
        "modifyVolumeStatus": {"status": status, "targetVolumeAttributesClassName": target},
        "conditions": [{"type": "ModifyVolumeError", "status": "True", "message": each} for each in errors],
    }
    assert expected == found(facts(persistentvolumeclaims=[changes])).keys()


@pytest.mark.parametrize(
    ("nodes", "told"), [([], "no longer exists"), ([{"metadata": {"name": "node-0"}}], "is not Ready")]
)
@pytest.mark.rule("13.1")
def test_reports_a_local_volume_of_a_lost_node(nodes: list[Json], told: str) -> None:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-0"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    volume = {"metadata": {"name": "v"}, "spec": {"nodeAffinity": affinity}}
    bound = claim("Bound", volumeName="v")
    known = facts(persistentvolumeclaims=[bound], persistentvolumes=[volume], nodes=nodes)
    finding = found(known)["VolumeNodeGone"]
    assert told in finding.message
    assert {} == found(facts(persistentvolumeclaims=[bound], persistentvolumes=[volume], nodes=[node()]))


# Nodes


@pytest.mark.rule("13.1")
def test_reports_pods_on_a_node_that_no_longer_exists() -> None:
    assert {"NodeGone"} == found(facts(pods=[pod()], nodes=[node("node-1")])).keys()


@pytest.mark.rule("13.2")
def test_reports_a_budget_that_blocks_a_drain() -> None:
    budget = {
        "metadata": {"name": "tikv"},
        "spec": {"selector": {"matchLabels": {"app.kubernetes.io/component": "tikv"}}},
        "status": {"disruptionsAllowed": 0},
    }
    cordoned = facts(pods=[pod()], nodes=[node(unschedulable=True)], poddisruptionbudgets=[budget])
    assert ("PodDisruptionBudget tikv",) == found(cordoned)["DrainBlocked"].objects
    assert {} == found(facts(pods=[pod()], nodes=[node()], poddisruptionbudgets=[budget]))


@pytest.mark.parametrize(
    ("on", "expected"), [((2, 1), True), ((1, 1, 1), False), ((2, 2, 1), False), ((3, 1, 1), True)]
)
@pytest.mark.rule("13.2")
def test_reports_a_node_that_has_half_of_the_pd_members(on: tuple[int, ...], expected: bool) -> None:
    trees = []
    for index, count in enumerate(on):
        for each in range(count):
            tree = pod(f"basic-pd-{index}-{each}", f"node-{index}")
            tree["metadata"]["labels"] = LABELS | {"app.kubernetes.io/component": "pd"}
            trees.append(tree)
    assert expected is ("OneNodeTakesTheMajority" in found(facts(pods=trees)))


# Outages


def said(kind: str, reason: str, message: str, since: str = LONG_AGO) -> Json:
    """A condition that is False."""
    return {"type": kind, "status": "False", "reason": reason, "message": message, "lastTransitionTime": since}


_OUTAGES = [each.reason for each in availability.CAUSES if each.severity is Severity.PROBLEM]


def test_every_outage_reason_of_a_condition_is_a_cause() -> None:
    assert REASONS == set(_OUTAGES)


@pytest.mark.parametrize("reason", _OUTAGES)
def test_an_outage_is_the_first_finding_and_quotes_the_operators_message(reason: str) -> None:
    status = {"conditions": [said("Ready", reason, "pd: 1 of 3 members runs. The database cannot serve.; pd: more")]}
    (finding,) = diagnose(facts(status, pods=[waiting("CrashLoopBackOff")]), OF_CLUSTER)[:1]
    assert (reason, "pd: 1 of 3 members runs. The database cannot serve.") == (finding.reason, finding.message)
    assert finding.way_out


@pytest.mark.parametrize("reason", _OUTAGES)
def test_finds_an_outage_of_a_component_that_the_ready_condition_does_not_name(reason: str) -> None:
    component = {"synced": True, "conditions": [said("Ready", reason, "it does not serve")]}
    assert reason in found(facts({"conditions": [said("Ready", "PDUnhealthy", "")], "tikv": component}))


def _members(count: int, **more: Any) -> Json:
    names = [f"basic-pd-{ordinal}" for ordinal in range(count)]
    return {name: {"name": name, "health": True, "lastTransitionTime": LONG_AGO} | more for name in names}


def _pending(name: str) -> Json:
    """A pod without a node: Kubernetes gives it no condition Ready."""
    return of(name, "pd", spec={"containers": []}, status={"phase": "Pending", "conditions": []})


_STALE_PD = {"members": _members(3), "conditions": [said("Observed", "PDUnreachable", "connection refused")]}


@pytest.mark.parametrize("ordinals", [(), (0,), (0, 1), (0, 1, 2)])
def test_infers_a_lost_quorum_from_pending_pods_while_pd_is_silent(ordinals: tuple[int, ...]) -> None:
    pods = [_pending(f"basic-pd-{each}") if each in ordinals else pod(f"basic-pd-{each}") for each in range(3)]
    known = found(facts({"pd": _STALE_PD}, pods=pods))
    assert (len(ordinals) >= 2) is ("PDQuorumLost" in known)


def test_infers_a_lost_quorum_from_missing_pods() -> None:
    assert "PDQuorumLost" in found(facts({"pd": _STALE_PD}, pods=[pod("basic-pd-0")]))


def test_an_unhealthy_member_without_a_transition_time_is_reported_at_once() -> None:
    sick = {"synced": True, "members": _members(3, health=False, lastTransitionTime=None)}
    assert {"PDQuorumLost", "MemberUnhealthy"} == found(facts({"pd": sick})).keys()


@pytest.mark.parametrize("since", ["", None, "yesterday"])
def test_a_lease_without_a_valid_renew_time_has_no_holder(since: str | None) -> None:
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": since}
    lease = {"metadata": {"name": "tidb-controller-manager", "namespace": "tidb-admin"}, "spec": spec}
    reasons = {each.reason for each in diagnose(facts(leases=[lease]), OF_ANY_CLUSTER)}
    assert "OperatorNotRunning" in reasons


def test_names_a_component_that_the_operator_cannot_observe_and_concludes_nothing_else() -> None:
    store = {"id": "1", "podName": "basic-tikv-0", "state": "Down", "lastTransitionTime": LONG_AGO}
    back = {"1": {"podName": "basic-tikv-0", "storeID": "1"}}
    observed = said("Observed", "PDUnreachable", "PD does not answer", stamp(NOW - timedelta(minutes=3)))
    part = {"synced": True, "stores": {"1": store}, "failureStores": back, "conditions": [observed]}
    (finding,) = found(facts({"tikv": part})).values()
    assert "NotObserved" == finding.reason
    assert "the operator has not been able to ask tikv for 3m: PD does not answer" == finding.message


# The cluster, its operator and the surroundings


def test_a_condition_without_a_transition_time_counts_as_old() -> None:
    status = conditions("PodsNotReady", "True", "")
    assert "has not been Ready: pd: so it is" == found(facts(status))["Slow"].message


@pytest.mark.rule("13.2")
def test_reports_stores_and_members_that_have_been_away_for_long() -> None:
    def status(state: str, since: str) -> Json:
        return {
            "tikv": {
                "synced": True,
                "stores": {"1": {"id": "1", "podName": "basic-tikv-0", "state": state, "lastTransitionTime": since}},
            }
        }

    assert {"StoreDown"} == found(facts(status("Down", JUST_NOW))).keys()
    assert {"StoreDown"} == found(facts(status("Disconnected", LONG_AGO))).keys()
    assert {} == found(facts(status("Disconnected", stamp(NOW - timedelta(seconds=5)))))
    assert {} == found(facts(status("Up", LONG_AGO)))
    sick = {"name": "basic-pd-0", "health": False, "lastTransitionTime": LONG_AGO}
    well = {"name": "basic-pd-1", "health": True, "lastTransitionTime": LONG_AGO}
    members = {"basic-pd-0": sick, "basic-pd-1": well, "basic-pd-2": well | {"name": "basic-pd-2"}}
    assert {"MemberUnhealthy"} == found(facts({"pd": {"synced": True, "members": members}})).keys()


def test_reads_a_microservice_whose_members_are_addresses() -> None:
    spec = SPEC | {"pd": SPEC["pd"] | {"mode": "ms"}, "pdms": [{"name": "tso", "replicas": 1}]}
    conditions = [said("Ready", "NoTSOServer", "No tso serves.")]
    tso = {"name": "tso", "members": ["http://basic-tso-0.basic-tso-peer:2379"], "conditions": conditions}
    assert {"NoTSOServer"} == found(facts({"pdms": {"tso": tso}}, spec)).keys()


def test_names_pumps_that_are_not_online() -> None:
    spec = SPEC | {"pump": {"baseImage": "pingcap/any", "replicas": 2, "requests": {"storage": "1Gi"}}}
    members = [
        {"nodeId": name, "host": f"basic-pump-{name}.basic-pump:8250", "state": state}
        for name, state in (("0", "online"), ("1", "paused"))
    ]
    assert ("Pod basic-pump-1",) == found(facts({"pump": {"members": members}}, spec))["MemberUnhealthy"].objects


@pytest.mark.parametrize(("phase", "expected"), [("Normal", True), ("Upgrade", False)])
def test_names_an_unhealthy_member_within_a_minute_unless_a_roll_restarts_it(phase: str, expected: bool) -> None:
    since = stamp(NOW - timedelta(seconds=40))
    members = {"basic-tidb-0": {"name": "basic-tidb-0", "health": False, "lastTransitionTime": since}}
    known = found(facts({"tidb": {"phase": phase, "members": members}}, SPEC | {"tidb": _PART}))
    assert expected is ("MemberUnhealthy" in known)


@pytest.mark.rule("13.2")
def test_reports_a_substitute_whose_original_has_recovered() -> None:
    store = {"id": "1", "podName": "basic-tikv-0", "state": "Up", "lastTransitionTime": LONG_AGO}
    part = {"synced": True, "stores": {"1": store}, "failureStores": {"1": {"podName": "basic-tikv-0", "storeID": "1"}}}
    assert "spec.tikv.recoverFailover" == found(facts({"tikv": part}))["FailoverLeft"].field


def conditions(reason: str, status: str, since: str = JUST_NOW) -> Json:
    """The log of an operator."""
    progressing = {"type": "Progressing", "status": status, "reason": reason, "message": "pd: so it is"}
    return {"conditions": [progressing, {"type": "Ready", "status": "False", "lastTransitionTime": since}]}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (conditions("FailedScaleIn", "False"), {"NeedsYou"}),
        (conditions("NoSuchCluster", "True"), {"NeedsYou"}),
        (conditions("ReferenceNotAllowed", "True"), {"NeedsYou"}),
        (conditions("Forbidden", "True"), {"OperatorRefused"}),
        (conditions("InvalidSpec", "False"), {"InvalidSpec"}),
        (conditions("PodsNotReady", "True", LONG_AGO), {"Slow"}),
        (conditions("PodsNotReady", "True"), set()),
        (conditions("Suspended", "False", LONG_AGO), set()),
        (conditions("Done", "False", LONG_AGO), set()),
    ],
)
@pytest.mark.rule("13.2")
def test_reports_conditions_that_need_the_user(status: Json, expected: set[str]) -> None:
    assert expected == found(facts(status)).keys()


@pytest.mark.rule("13.2")
def test_judges_no_settings_of_an_invalid_spec() -> None:
    tiproxy = {"replicas": 1, "config": {"log": {"level": "info"}}, "env": [{"value": "x"}]}
    assert "spec.tiproxy.env[0].name" == found(facts(spec=SPEC | {"tiproxy": tiproxy}))["InvalidSpec"].field


def test_names_each_roll_that_stands_still() -> None:
    told = {"type": "Progressing", "status": "True", "reason": "RollingUpdateStuck", "message": "stands still since 9"}
    finding = found(facts({"tikv": {"conditions": [told]}}, SPEC | {"tikv": _PART}))["RollStuck"]
    assert ("tikv: stands still since 9", "status.tikv.conditions") == (finding.message, finding.field)
    going = told | {"reason": "RollingUpdate"}
    assert "RollStuck" not in found(facts({"tikv": {"conditions": [going]}}, SPEC | {"tikv": _PART}))


def test_a_reason_has_its_own_way_out() -> None:
    finding = found(facts(conditions("FailedScaleIn", "False")))["NeedsYou"]
    assert ("pd: so it is", "FailedScaleIn") == (finding.message, finding.value)
    assert "docs/reasons" not in finding.way_out


@pytest.mark.rule("13.2")
def test_reports_certificates_before_they_expire() -> None:
    ends = NOW + timedelta(days=20)
    soon = CertificateFinding("", NOW - timedelta(days=1), ends, "tls.crt")
    over = CertificateFinding("", NOW - timedelta(days=9), NOW - timedelta(days=1), "tls.crt")
    known = facts()
    both = found(Facts(now=NOW, cluster=known.cluster, certificates={"a": soon, "b": over}))
    assert (("Secret a",), stamp(ends)) == (
        both["CertificateExpiresSoon"].objects,
        both["CertificateExpiresSoon"].value,
    )
    assert "expired on 2025-12-31T00:00:00Z" in both["BadCertificate"].message


@pytest.mark.parametrize(("status", "expected"), [("True", {"LogBackupUnreadable"}), ("False", set[str]())])
def test_reports_log_backups_whose_state_cannot_be_read(status: str, expected: set[str]) -> None:
    said = {"type": "LogStateUnreadable", "status": status, "message": "since noon PD is silent"}
    log = {"spec": {"backupMode": "log", "br": {"cluster": "basic"}}, "status": {"conditions": [said]}}
    findings = found(facts(backups=[{"metadata": {"name": "b", "namespace": "lab"}} | log]))
    assert expected == findings.keys()
    assert all(each.message == "since noon PD is silent" for each in findings.values())


@pytest.mark.parametrize(("resource", "reason"), [("backups", "BackupFailed"), ("restores", "RestoreFailed")])
@pytest.mark.rule("13.2")
def test_reports_failed_backups_of_the_cluster(resource: str, reason: str) -> None:
    def failed(cluster: str) -> Facts:
        said = {"type": "Failed", "status": "True", "reason": "AccessDenied", "message": "s3: no"}
        status = {"phase": "Failed", "conditions": [said]}
        backup = {"metadata": {"name": "b"}, "spec": {"br": {"cluster": cluster}}, "status": status}
        return facts(None, None, **{resource: [backup]})

    assert "AccessDenied: s3: no" == found(failed("basic"))[reason].message
    assert {} == found(failed("other"))


@pytest.mark.parametrize(("status", "expected"), [("True", {"BackupWaiting"}), ("False", set[str]())])
@pytest.mark.parametrize("resource", ["backups", "restores"])
def test_reports_a_waiting_backup(resource: str, status: str, expected: set[str]) -> None:
    said = {"type": "Waiting", "status": status, "reason": "ClusterNotServing", "message": "waiting for PD"}
    backup = {
        "metadata": {"name": "b"},
        "spec": {"br": {"cluster": "basic"}},
        "status": {"conditions": [said | {"lastTransitionTime": LONG_AGO}]},
    }
    assert expected == found(facts(None, None, **{resource: [backup]})).keys()


@pytest.mark.rule("13.2")
def test_reports_a_paused_schedule() -> None:
    schedule = {"metadata": {"name": "s"}, "spec": {"pause": True, "backupTemplate": {"br": {"cluster": "basic"}}}}
    assert {"SchedulePaused"} == found(facts(backupschedules=[schedule])).keys()


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        ("backups", {"br": {"cluster": "basic"}, "storageSize": "1Gi"}),
        ("restores", {"br": {"cluster": "basic"}, "storageSize": "1Gi"}),
        ("backupschedules", {"backupTemplate": {"br": {"cluster": "basic"}}, "storageSize": "1Gi"}),
        ("compactbackups", {"br": {"cluster": "basic", "db": "shop"}}),
    ],
)
@pytest.mark.rule("13.2")
def test_reports_fields_of_backups_without_effect(resource: str, spec: Json) -> None:
    listed: dict[str, Any] = {resource: [{"metadata": {"name": "b"}, "spec": spec}]}
    findings = found(facts(**listed))
    assert {"BackupFieldsIgnored"} == findings.keys()
    assert findings["BackupFieldsIgnored"].field == (
        "spec.br.db" if resource == "compactbackups" else "spec.storageSize"
    )


@pytest.mark.rule("13.1")
def test_a_pod_that_stays_terminating_names_its_node() -> None:
    tree = pod()
    tree["metadata"]["deletionTimestamp"] = LONG_AGO
    findings = found(facts(pods=[tree], nodes=[{"metadata": {"name": "node-0"}}]))
    assert "node node-0 does not answer" in findings["PodTerminating"].message


@pytest.mark.rule("13.2")
def test_reports_a_missing_or_older_definition() -> None:
    crd = definition(TIDB_CLUSTER)

    def said(*there: Json) -> set[str]:
        known = Facts(now=NOW, listed={CUSTOM_RESOURCE_DEFINITIONS: there})
        return {each.reason for each in diagnose(known, OF_ANY_CLUSTER)}

    assert {"CRDMissing"} == said()
    assert set() == said(crd)
    del crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["tiproxy"]
    assert {"CRDOlderThanOperator"} == said(crd)
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = loose
    assert set() == said(crd)


def operator_pod(ready: bool, *arguments: str, **state: Any) -> Json:
    """A pod of the operator."""
    tree = pod("tidb-controller-manager-0", ready=ready, state=state or {"running": {}})
    tree["spec"]["containers"][0]["args"] = list(arguments)
    return tree


@pytest.mark.rule("13.2")
def test_reports_an_operator_that_does_not_lead_and_the_state_of_its_pod() -> None:
    crashed = {"waiting": {"reason": "CrashLoopBackOff"}}
    known = Facts(now=NOW, cluster=facts().cluster, listed={LEASES: ()}, operators=[operator_pod(False, **crashed)])
    (finding,) = diagnose(known, OF_ANY_CLUSTER)
    assert "OperatorNotRunning" == finding.reason
    assert "tidb-controller-manager-0 is not Ready (container tikv: CrashLoopBackOff)" in finding.message


@pytest.mark.rule("13.2")
def test_reports_an_operator_that_only_observes() -> None:
    known = Facts(now=NOW, cluster=facts().cluster, operators=[operator_pod(True, "-observe")])
    assert ["OperatorObserves"] == [each.reason for each in diagnose(known, OF_ANY_CLUSTER)]


@pytest.mark.rule("13.2")
def test_reports_a_cluster_that_no_operator_has_observed() -> None:
    renewed = NOW.strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    lease = {
        "metadata": {"name": "tidb-controller-manager", "namespace": "tidb-admin"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": renewed},
    }
    metadata = {"name": "basic", "namespace": "default", "uid": "u", "creationTimestamp": LONG_AGO}
    known = Facts(now=NOW, cluster={"metadata": metadata, "spec": SPEC}, listed={LEASES: [lease]})
    assert {"NotNoticed"} == found(known).keys()


def shard(number: int, count: int) -> Json:
    """The Lease of a shard that is held."""
    name = f"tidb-controller-manager.shard-{number}" if number else "tidb-controller-manager"
    said = {"tidb.pingcap.com/operator-shards": f'{{"count":{count},"holder":"a"}}'}
    renewed = NOW.strftime("%Y-%m-%dT%H:%M:%S.000000Z")
    return {
        "metadata": {"name": name, "namespace": "tidb-admin", "annotations": said},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": renewed},
    }


@pytest.mark.rule("13.2")
def test_reports_a_shard_without_a_holder_and_takes_all_holders_for_one_operator() -> None:
    count = 3
    own = shard_of("default/basic", count)
    every = [shard(number, count) for number in range(count)]
    assert {} == found(facts(leases=every))
    finding = found(facts(leases=[each for number, each in enumerate(every) if number != own]))["ShardNotHeld"]
    assert finding.value == f"tidb-admin/{every[own]['metadata']['name']}"


def test_the_same_cause_on_many_objects_is_one_finding() -> None:
    many = [pod(f"basic-tikv-{ordinal}", f"node-{ordinal}") for ordinal in range(3)]
    for each in many:
        each["status"]["qosClass"] = "BestEffort"
    (finding,) = diagnose(facts(pods=many), OF_CLUSTER)
    assert ("Pod basic-tikv-0", "Pod basic-tikv-1", "Pod basic-tikv-2") == finding.objects


@pytest.mark.rule("4.4")
@pytest.mark.parametrize(
    ("group", "slots", "reported"),
    [("apps/v1", "[1]", True), ("apps/v1", "[]", False), ("apps.pingcap.com/v1", "[1]", False)],
)
def test_delete_slots_of_native_stateful_sets_have_no_effect(group: str, slots: str, reported: bool) -> None:
    key = "tikv.tidb.pingcap.com/delete-slots"
    known = facts(statefulsets=[of("basic-tikv", apiVersion=group, spec={"replicas": 3}, status={"replicas": 3})])
    annotated = known.cluster["metadata"] | {"annotations": {key: slots}}
    told = found(replace(known, cluster=known.cluster | {"metadata": annotated}))
    assert reported == ("DeleteSlotsIgnored" in told)
    if reported:
        assert (f"metadata.annotations[{key}]", "[1]") == (
            told["DeleteSlotsIgnored"].field,
            told["DeleteSlotsIgnored"].value,
        )


@pytest.mark.rule("4.4")
@pytest.mark.parametrize(
    ("group", "created", "status", "reported"),
    [
        ("apps.pingcap.com/v1", LONG_AGO, {"replicas": 3}, True),
        ("apps.pingcap.com/v1", JUST_NOW, {"replicas": 3}, False),
        ("apps.pingcap.com/v1", LONG_AGO, {"replicas": 3, "observedGeneration": 1}, False),
        ("apps/v1", LONG_AGO, {"replicas": 3}, False),
    ],
)
def test_reports_an_advanced_stateful_set_that_no_controller_notices(
    group: str, created: str, status: Json, reported: bool
) -> None:
    there = of("basic-tikv", apiVersion=group, spec={"replicas": 3}, status=status)
    there["metadata"]["creationTimestamp"] = created
    assert reported == ("AdvancedStatefulSetsIgnored" in found(facts(statefulsets=[there])))
