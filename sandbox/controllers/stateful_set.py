"""The controllers of StatefulSets, Kubernetes' own and Advanced ones: revisions, claims, pods, status."""

import contextlib
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import structlog

from kube.errors import Forbidden, Invalid
from kube.objects import Json
from kube.resources import (
    ADVANCED_STATEFUL_SETS,
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    STATEFUL_SETS,
    Resource,
)
from sandbox.cluster import Cluster, labels_of
from sandbox.controllers.revisions import HASH_LABEL, name_of_revision, revision_of, template_of
from sandbox.controllers.stateful_set_plan import (
    Plan,
    Snapshot,
    available_from,
    finished,
    is_advanced,
    plan,
    serves,
    status_of,
)
from sandbox.owners import controller_reference, controller_uid, is_deleted
from sandbox.selectors import matches

_log = structlog.get_logger(__name__)

_HISTORY = 10
_CONVERTED = "apps.pingcap.com/upgrade-to-asts"
"""The label of a revision without the selector's labels, which is meant for the Advanced StatefulSet of that name."""
_NEVER = float("inf")
_FIXED = "pod updates may not change fields other than `spec.containers[*].image` and a few others"
_FIRST_BACK_OFF, _LAST_BACK_OFF = 0.005, 1000.0
"""The first and the longest delay before a failed sync is repeated, in seconds; the delay doubles as in Kubernetes'
work queue.
"""


class _Unfinished(Exception):
    """Raised if a set could not be brought to its spec."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failed sync, and when it is repeated unless the set or one of its pods changes earlier."""

    back_off: float
    until: float
    seen: Sequence[str]
    """The versions of the set and its pods."""


class StatefulSets:
    """Advances every StatefulSet of one resource, Kubernetes' own or Advanced ones, by one step.

    The controller of Advanced StatefulSets is as old as Kubernetes 1.17. It gives pods no label of their ordinal,
    repairs no claims of pods that exist, does not wait until a claim has vanished that is being deleted, and reports no
    status after a failure. It adopts revisions even while its set is being deleted, and fails where it has to adopt one
    beside a revision that has a controller.
    """

    def __init__(self, cluster: Cluster, resource: Resource = STATEFUL_SETS) -> None:
        self._cluster = cluster
        self._resource = resource
        self._advanced = resource == ADVANCED_STATEFUL_SETS
        self.name = "advanced-stateful-set" if self._advanced else "stateful-set"
        self.watches: tuple[Hashable, ...] = (resource, PODS, CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS)
        self._failures: dict[str, _Failure] = {}
        """Failures by the UID of the set."""
        self._revisions: dict[str, tuple[int, str]] = {}
        """The last generation of each set and the name of its revision, by the set's UID."""
        self.one_at_most = False
        """The feature MaxUnavailableStatefulSet, initially enabled in Kubernetes 1.35; see `Snapshot`."""

    def step(self) -> float | None:
        """Plan and act for each set; return when a pod becomes available or a failed sync is repeated."""
        sets = self._cluster.list(self._resource)
        there = [tree for tree in sets if not is_deleted(tree)]
        if self._advanced:
            self._adopt_before_vanishing(tree for tree in sets if is_deleted(tree))
        uids = {tree["metadata"]["uid"] for tree in there}
        self._failures = {uid: failure for uid, failure in self._failures.items() if uid in uids}
        due = [self._attempt(tree) for tree in there]
        return min((time for time in due if time is not None), default=None)

    def _attempt(self, stateful_set: Json) -> float | None:
        """Sync one set; a failure, e.g. a revision with bad labels, stops no other set and is retried.

        The retry also serves a set that waited for a foreign pod to vanish, which triggers no event of the set.
        """
        meta, now = stateful_set["metadata"], self._cluster.clock.now()
        failure = self._failures.get(meta["uid"])
        if failure is not None and now < failure.until and failure.seen == self._versions(stateful_set):
            return failure.until
        try:
            due = self._sync(stateful_set)
        except (Invalid, Forbidden, _Unfinished) as error:
            _log.debug("sync failed", stateful_set=meta["name"], error=str(error))
            back_off = min(2 * failure.back_off, _LAST_BACK_OFF) if failure is not None else _FIRST_BACK_OFF
            self._failures[meta["uid"]] = _Failure(back_off, now + back_off, self._versions(stateful_set))
            return now + back_off
        self._failures.pop(meta["uid"], None)
        return due

    def _versions(self, stateful_set: Json) -> list[str]:
        meta = stateful_set["metadata"]
        pods = [pod for pod in self._cluster.list(PODS, meta["namespace"]) if self._concerns(stateful_set, pod)]
        return [each["metadata"]["resourceVersion"] for each in (stateful_set, *pods)]

    def _concerns(self, stateful_set: Json, pod: Json) -> bool:
        """True if events of a pod trigger the set: its own pod, or an orphan that its selector matches."""
        owner = controller_uid(pod)
        return owner == stateful_set["metadata"]["uid"] or (not owner and self._may_adopt(stateful_set, pod))

    def _sync(self, stateful_set: Json) -> float | None:
        revisions = self._owned(CONTROLLER_REVISIONS, stateful_set)
        updated = self._revision(stateful_set, revisions)
        if updated is None:
            return None
        named = {each["metadata"]["name"]: each for each in (*revisions, updated)}
        before: Json = stateful_set.get("status", {})
        name: str = updated["metadata"]["name"]
        current = before.get("currentRevision") or name
        snapshot = Snapshot(
            stateful_set,
            self._pods(stateful_set),
            current if current in named else name,
            name,
            self._cluster.clock.wall().timestamp(),
            self.one_at_most,
        )
        planned = plan(snapshot)
        is_done = self._carry_out(snapshot, planned, named)
        if self._advanced and not is_done:
            raise _Unfinished(f"not all pods of {stateful_set['metadata']['name']} could be brought in line")
        self._retain_claims(snapshot)
        status = status_of(snapshot, before)
        self._cluster.set_status(self._resource, stateful_set, status)
        self._truncate(snapshot, revisions, status)
        if not is_done:
            raise _Unfinished(f"not all pods of {stateful_set['metadata']['name']} could be brought in line")
        return self._next_available(snapshot)

    def _adopt_before_vanishing(self, deleted: Iterable[Json]) -> None:
        """Adopt the revisions of sets that are being deleted."""
        for stateful_set in deleted:
            with contextlib.suppress(_Unfinished):
                self._owned(CONTROLLER_REVISIONS, stateful_set)

    def _owned(self, resource: Resource, stateful_set: Json) -> list[Json]:
        """The objects that the set controls, after adopting matching orphans and releasing others."""
        owned = []
        meta = stateful_set["metadata"]
        trees = self._cluster.list(resource, meta["namespace"])
        if self._advanced and resource == CONTROLLER_REVISIONS:
            trees = self._adoptable(stateful_set, trees)
        for tree in trees:
            owner = controller_uid(tree)
            if owner == meta["uid"]:
                if is_deleted(tree) or self._selects(stateful_set, tree):
                    owned.append(tree)
                else:
                    self._let_go(resource, meta["uid"], tree)
            elif not owner and not is_deleted(tree) and self._may_adopt(stateful_set, tree):
                adopted = self._adopt(resource, stateful_set, tree)
                owned += [adopted] if adopted is not None else []
        return owned

    def _adoptable(self, stateful_set: Json, revisions: Iterable[Json]) -> list[Json]:
        """The revisions that the set selects, by name. Raises _Unfinished after adopting those before a controlled one.

        With one orphan among them, the controller of Advanced StatefulSets adopts all, and fails at a controlled one.
        """
        selected = [tree for tree in revisions if self._selects(stateful_set, tree)]
        selected.sort(key=lambda tree: str(tree["metadata"]["name"]))
        controlled = [bool(controller_uid(tree)) for tree in selected]
        if all(controlled) or not any(controlled):
            return selected
        for tree in selected[: controlled.index(True)]:
            self._adopt(CONTROLLER_REVISIONS, stateful_set, tree)
        raise _Unfinished(f"attempt to adopt revision {selected[controlled.index(True)]['metadata']['name']}")

    def _adopt(self, resource: Resource, stateful_set: Json, tree: Json) -> Json | None:
        references = [*(tree["metadata"].get("ownerReferences") or ()), controller_reference(stateful_set)]
        given: Json = {"ownerReferences": references}
        if _CONVERTED in labels_of(tree):
            given["labels"] = stateful_set["spec"]["template"]["metadata"].get("labels") or {}
        return self._cluster.patch(resource, tree, {"metadata": given})

    def _let_go(self, resource: Resource, owner: str, tree: Json) -> None:
        left = [each for each in tree["metadata"]["ownerReferences"] if each["uid"] != owner]
        self._cluster.patch(resource, tree, {"metadata": {"ownerReferences": left}})

    def _may_adopt(self, stateful_set: Json, tree: Json) -> bool:
        name = stateful_set["metadata"]["name"]
        return tree["metadata"]["name"].startswith(f"{name}-") and self._selects(stateful_set, tree)

    def _selects(self, stateful_set: Json, tree: Json) -> bool:
        converted = self._advanced and labels_of(tree).get(_CONVERTED) == stateful_set["metadata"]["name"]
        return converted or matches(stateful_set["spec"]["selector"], labels_of(tree))

    def _pods(self, stateful_set: Json) -> dict[int, Json]:
        pattern = re.compile(rf"{re.escape(stateful_set['metadata']['name'])}-(\d+)")
        found = {}
        for pod in self._owned(PODS, stateful_set):
            match = pattern.fullmatch(pod["metadata"]["name"])
            if match is not None:
                found[int(match.group(1))] = pod
        return found

    def _revision(self, stateful_set: Json, revisions: list[Json]) -> Json | None:
        """The revision of the current template; an equal old one becomes the newest again."""
        newest = max((revision["revision"] for revision in revisions), default=0)
        wanted = self._name_of_revision(stateful_set)
        known = next((revision for revision in revisions if revision["metadata"]["name"] == wanted), None)
        if known is None:
            return self._cluster.create(CONTROLLER_REVISIONS, revision_of(stateful_set, newest + 1))
        if known["revision"] == newest:
            return known
        return self._cluster.patch(CONTROLLER_REVISIONS, known, {"revision": newest + 1})

    def _name_of_revision(self, stateful_set: Json) -> str:
        """The name of the revision of the current template, which each generation hashes once."""
        meta = stateful_set["metadata"]
        known = self._revisions.get(meta["uid"])
        if known is None or known[0] != meta["generation"]:
            known = self._revisions[meta["uid"]] = meta["generation"], name_of_revision(stateful_set)
        return known[1]

    def _carry_out(self, snapshot: Snapshot, planned: Plan, revisions: dict[str, Json]) -> bool:
        """Create, update and delete pods; True if nothing failed.

        Parallel pods are processed in groups of one, two, four, ... ordinals, of Advanced StatefulSets one by one;
        after a failure the later groups are skipped. In order, nothing follows the first pod that does not serve.
        """
        stateful_set, failed = snapshot.stateful_set, _NEVER
        for place, ordinal in enumerate(snapshot.ordinals, start=1):
            group = place if self._advanced else place.bit_length()
            if group > failed:
                break
            pod = snapshot.pods.get(ordinal)
            if pod is None:
                new = new_pod(stateful_set, ordinal, revisions[planned.create[ordinal]])
                done = self._create(stateful_set, new, ordinal)
            else:
                done = self._is_in_line(snapshot, pod, ordinal)
            failed = failed if done else group
            if not snapshot.parallel and (pod is None or not serves(snapshot, pod)):
                break
        if failed != _NEVER:
            return False
        for pod in planned.delete:
            self._cluster.delete(PODS, pod)
            self._record_event(stateful_set, "SuccessfulDelete", f"delete Pod {pod['metadata']['name']}")
        return True

    def _is_in_line(self, snapshot: Snapshot, pod: Json, ordinal: int) -> bool:
        """True if a pod has the claims that it waits for, and mounts the set's claims, which no client can change."""
        stateful_set, name = snapshot.stateful_set, pod["metadata"]["name"]
        if finished(pod):
            return True
        pending = pod.get("status", {}).get("phase") == "Pending"
        if pending and not self._advanced and self._make_claims(stateful_set, ordinal):
            return False
        if not snapshot.parallel and not serves(snapshot, pod):
            return True
        volumes = pod["spec"].get("volumes") or ()
        mounted = {each["name"]: (each.get("persistentVolumeClaim") or {}).get("claimName") for each in volumes}
        wanted = {
            volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in _claimed(stateful_set, ordinal)
        }
        if wanted.items() <= mounted.items():
            return True
        self._make_claims(stateful_set, ordinal)
        owner = stateful_set["metadata"]["name"]
        what = (
            f'Update Pod {name} in StatefulSet {owner} failed error: Pod "{name}" is invalid: spec: Forbidden: {_FIXED}'
        )
        self._cluster.event(stateful_set, "Warning", "FailedUpdate", what)
        return False

    def _create(self, stateful_set: Json, pod: Json, ordinal: int) -> bool:
        """Create a pod; False after a failure, e.g. a rejection by the API server, which an event reports."""
        name, owner = pod["metadata"]["name"], stateful_set["metadata"]["name"]
        try:
            in_the_way = self._make_claims(stateful_set, ordinal)
            created = None if in_the_way else self._cluster.create(PODS, pod)
        except (Invalid, Forbidden) as error:
            created, in_the_way = None, error.message
        if in_the_way:
            what = f"Create Pod {name} in StatefulSet {owner} failed error: {in_the_way}"
            self._cluster.event(stateful_set, "Warning", "FailedCreate", what)
        if created is not None:
            self._record_event(stateful_set, "SuccessfulCreate", f"create Pod {name}")
        return created is not None

    def _record_event(self, stateful_set: Json, reason: str, what: str) -> None:
        message = f"{what} in StatefulSet {stateful_set['metadata']['name']} successful"
        self._cluster.event(stateful_set, "Normal", reason, message)

    def _make_claims(self, stateful_set: Json, ordinal: int) -> str:
        """Create a pod's missing claims; return a message about claims that are being deleted."""
        namespace, leaving = stateful_set["metadata"]["namespace"], []
        for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
            name = claim_name(template, stateful_set, ordinal)
            there = self._cluster.get(PERSISTENT_VOLUME_CLAIMS, namespace, name)
            if there is not None:
                leaving += [f"pvc {name} is being deleted"] if is_deleted(there) and not self._advanced else []
                continue
            if self._cluster.create(PERSISTENT_VOLUME_CLAIMS, new_claim(stateful_set, template, name)) is not None:
                pod = f"{stateful_set['metadata']['name']}-{ordinal}"
                self._record_event(stateful_set, "SuccessfulCreate", f"create Claim {name} Pod {pod}")
        return leaving[0] if len(leaving) == 1 else f"[{', '.join(leaving)}]" if leaving else ""

    def _retain_claims(self, snapshot: Snapshot) -> None:
        """Delete the claims of former pods if the set's retention policy says so."""
        stateful_set = snapshot.stateful_set
        policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
        if policy.get("whenScaled") != "Delete":
            return
        for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
            pattern = re.compile(rf"{re.escape(claim_name(template, stateful_set, 0)[:-1])}(\d+)")
            for claim in self._cluster.list(PERSISTENT_VOLUME_CLAIMS, stateful_set["metadata"]["namespace"]):
                match = pattern.fullmatch(claim["metadata"]["name"])
                if match is None or is_deleted(claim):
                    continue
                ordinal = int(match.group(1))
                if ordinal not in snapshot.ordinals and ordinal not in snapshot.pods:
                    self._cluster.delete(PERSISTENT_VOLUME_CLAIMS, claim)

    def _truncate(self, snapshot: Snapshot, revisions: list[Json], status: Json) -> None:
        live = {status["currentRevision"], snapshot.updated}
        live |= {labels_of(pod).get(HASH_LABEL, "") for pod in snapshot.pods.values()}
        old = [each for each in revisions if each["metadata"]["name"] not in live]
        limit: int = snapshot.stateful_set["spec"].get("revisionHistoryLimit", _HISTORY)
        for revision in sorted(old, key=lambda each: int(each["revision"]))[: max(len(old) - limit, 0)]:
            self._cluster.delete(CONTROLLER_REVISIONS, revision)

    def _next_available(self, snapshot: Snapshot) -> float | None:
        times = [available_from(snapshot.stateful_set, pod) - snapshot.now for pod in snapshot.pods.values()]
        waits = [wait for wait in times if wait > 0]
        return self._cluster.clock.now() + min(waits) if waits else None


def claim_name(template: Json, stateful_set: Json, ordinal: int) -> str:
    """`<template>-<set>-<ordinal>`."""
    return f"{template['metadata']['name']}-{stateful_set['metadata']['name']}-{ordinal}"


def new_claim(stateful_set: Json, template: Json, name: str) -> Json:
    """A claim of a template, with the set's selector as labels."""
    given = template["metadata"]
    labels = (given.get("labels") or {}) | (stateful_set["spec"]["selector"].get("matchLabels") or {})
    meta: Json = {"name": name, "namespace": stateful_set["metadata"]["namespace"], "labels": labels}
    if given.get("annotations"):
        meta["annotations"] = given["annotations"]
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    if policy.get("whenDeleted") == "Delete":
        meta["ownerReferences"] = [controller_reference(stateful_set)]
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": template["spec"]}


def new_pod(stateful_set: Json, ordinal: int, revision: Json) -> Json:
    """A pod of a revision, with the identity of its ordinal."""
    template = template_of(revision)
    name = f"{stateful_set['metadata']['name']}-{ordinal}"
    given = template.get("metadata", {})
    index = {} if is_advanced(stateful_set) else {"apps.kubernetes.io/pod-index": str(ordinal)}
    labels = (given.get("labels") or {}) | {
        "statefulset.kubernetes.io/pod-name": name,
        **index,
        HASH_LABEL: revision["metadata"]["name"],
    }
    meta: Json = {
        "name": name,
        "generateName": f"{stateful_set['metadata']['name']}-",
        "namespace": stateful_set["metadata"]["namespace"],
        "labels": labels,
        "ownerReferences": [controller_reference(stateful_set)],
    }
    if given.get("annotations"):
        meta["annotations"] = given["annotations"]
    claims = _claimed(stateful_set, ordinal)
    claimed = {claim["name"] for claim in claims}
    volumes = [volume for volume in template["spec"].get("volumes") or () if volume["name"] not in claimed]
    spec = template["spec"] | {
        "hostname": name,
        "subdomain": stateful_set["spec"].get("serviceName", ""),
        "volumes": [*claims, *volumes],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _claimed(stateful_set: Json, ordinal: int) -> list[Json]:
    """The volumes that a pod gets from the claim templates."""
    return [
        {
            "name": each["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": claim_name(each, stateful_set, ordinal)},
        }
        for each in stateful_set["spec"].get("volumeClaimTemplates") or ()
    ]
