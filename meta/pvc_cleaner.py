"""The stage `pvc_cleaner`: the scheduler's locks, and the claims that scale-ins left behind (lifecycle.md 11.2, 8.5).

A claim is deleted only with spec.enablePVReclaim, and only when live reads of this round say that nothing needs it: its
pod is gone, the StatefulSet has no such ordinal, PD no such member or store (I1, I2, F5).
"""

from kube.deletion import Destroyer, Evidence
from kube.events import NORMAL
from kube.objects import Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from member import labels
from member.naming import member_name, ordinal_of
from member.outcome import Done, Outcome
from member.round import Round
from member.writing import require_owner
from meta.left_behind import Reclaim, Reprieve, Unlock, deferred_step, lock_step
from meta.looking import claims_of_cluster, on_current, volume_of
from meta.marking import Marks, mark
from meta.reclaim_policy import set_policy

_LOCKED = ("pd", "tikv", "tiflash")
_LEFT_BEHIND = (*_LOCKED, "tidb")


def act(round_: Round) -> Outcome:
    """Do for each claim what is due. Raises OwnerGone, Conflict, other ApiErrors, TransportError."""
    if round_.tc.spec.paused:
        return Done("paused")
    for claim in claims_of_cluster(round_, _LOCKED):
        if isinstance(lock_step(claim, _pod(round_, claim)), Unlock):
            _unmark(round_, claim, labels.POD_SCHEDULING)
    for claim in claims_of_cluster(round_, _LEFT_BEHIND):
        match deferred_step(round_.tc, claim, _pod(round_, claim)):
            case Reprieve():
                _unmark(round_, claim, labels.PVC_DEFER_DELETING, labels.SCALE_IN_TIME)
            case Reclaim():
                _reclaim(round_, claim)
    return Done()


def _pod(round_: Round, claim: Object) -> Object | None:
    """The cached pod that a claim names."""
    name = claim.metadata.annotations.get(labels.POD_NAME)
    return round_.listers.pods.get(round_.namespace, name) if name else None


def _unmark(round_: Round, claim: Object, *annotations: str) -> None:
    marks = Marks(without=annotations)
    on_current(
        round_, PERSISTENT_VOLUME_CLAIMS, claim, lambda there: mark(round_, PERSISTENT_VOLUME_CLAIMS, there, marks)
    )


def _reclaim(round_: Round, claim: Object) -> None:
    """Let a claim and its volume go, if live reads confirm the decision; what they do not, the next round looks at."""
    if round_.listers.persistent_volumes is None:
        return
    require_owner(round_)
    destroyer = Destroyer(round_.doors.client)
    evidence = _confirmed(round_, destroyer, claim)
    volume = volume_of(round_, claim) if evidence else None
    if evidence is None or volume is None:
        return
    set_policy(round_, claim, volume, "Delete")
    destroyer.delete(evidence)
    what = f"delete PersistentVolumeClaim {claim.metadata.name} in TidbCluster {round_.name} successful"
    round_.doors.recorder.event(round_.owner, NORMAL, "SuccessfulDelete", what)


def _confirmed(round_: Round, destroyer: Destroyer, claim: Object) -> Evidence | None:
    """The claim as it is now, when it is the cached one and neither a pod nor the StatefulSet has a use for it."""
    pod, kind = claim.metadata.annotations[labels.POD_NAME], claim.metadata.labels[labels.COMPONENT]
    if destroyer.observe(PODS, pod, round_.namespace) is not None:
        return None
    stateful_set = destroyer.observe(STATEFUL_SETS, member_name(round_.tc, kind), round_.namespace)
    if stateful_set is None or ordinal_of(pod) < stateful_set.object.decode()["spec"]["replicas"]:
        return None
    evidence = destroyer.observe(PERSISTENT_VOLUME_CLAIMS, claim.metadata.name, round_.namespace)
    if evidence is None or evidence.object.metadata.resource_version != claim.metadata.resource_version:
        return None
    return evidence if evidence.object.metadata.uid == claim.metadata.uid else None
