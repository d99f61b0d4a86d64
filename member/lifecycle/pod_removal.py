"""The removal of one pod from its component, and its cancellation (lifecycle.md 8.3, 8.5, 8.9, F32, F36).

Before the operator changes the data plane, it writes a note on the pod and on its volume claims. The claims outlive the
pod, so a restarted operator, or a user who cancels the scale-in, finds out what has begun.
"""

from dataclasses import dataclass
from datetime import datetime

from apis.ordinals import OrdinalSet
from apis.times import parse_time, stamp
from kube.actions import Apply
from kube.objects import Json, Object
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, Resource
from member.context import ClusterContext, OwnContext
from member.labels import POD_NAME, PVC_DEFER_DELETING, SCALE_IN_TIME, STORE_ID
from member.naming import pod_name, pvc_name

_MARKS = frozenset({PVC_DEFER_DELETING, SCALE_IN_TIME})


@dataclass(frozen=True, slots=True)
class PodRemoval:
    """A pod that is leaving, or was about to leave; `pod` and `claims` may come from the cache.

    `staying` holds the pods that stay; all others leave, including this one.
    """

    ctx: OwnContext
    component: str
    ordinal: int
    staying: OrdinalSet
    pod: Object | None
    claims: tuple[Object, ...]

    @property
    def name(self) -> str:
        """The name of the pod."""
        return pod_name(self.ctx.tc, self.component, self.ordinal)

    @property
    def begun(self) -> bool:
        """True if a note or a mark says that the pod is leaving."""
        carriers = self.claims if self.pod is None else (*self.claims, self.pod)
        return bool([carrier for carrier in carriers if not _MARKS.isdisjoint(carrier.metadata.annotations)])

    @property
    def since(self) -> datetime | None:
        """The time of the earliest note; None without a note."""
        texts = (carrier.metadata.annotations.get(SCALE_IN_TIME, "") for _, carrier in self._carriers())
        return min((time for time in map(parse_time, texts) if time), default=None)

    @property
    def store_id(self) -> int | None:
        """The store id from the labels of the pod and its claims; None if they have none."""
        texts = (carrier.metadata.labels.get(STORE_ID, "") for _, carrier in self._carriers())
        return next((int(text) for text in texts if text.isdecimal()), None)

    async def note(self, store_id: int | None = None) -> bool:
        """Note on the pod and its claims that the pod is leaving, and its store. Raises ApiError, TransportError.

        Returns False if another client changes the labels of the store back each time.
        """
        since = stamp(self.since or self.ctx.deps.clock.wall())
        labels = {} if store_id is None else {STORE_ID: str(store_id)}
        now = [await self._write(each, carrier, {SCALE_IN_TIME: since}, labels) for each, carrier in self._carriers()]
        return all(labels.items() <= carrier.metadata.labels.items() for carrier in now)

    async def defer_deleting(self) -> None:
        """Mark the claims as no longer needed (8.9). Raises ApiError, TransportError.

        This also labels each claim with its pod's name, which is missing if the pod left before PD knew it.
        """
        now = self.ctx.deps.clock.wall()
        # another operator process with an older spec may have removed the note in the meantime
        marks = {SCALE_IN_TIME: stamp(self.since or now), PVC_DEFER_DELETING: stamp(now), POD_NAME: self.name}
        for claim in self.claims:
            if PVC_DEFER_DELETING not in claim.metadata.annotations:
                await self._write(PERSISTENT_VOLUME_CLAIMS, claim, marks)

    async def clear(self) -> None:
        """Remove notes and marks, because the pod stays. Raises ApiError, TransportError."""
        for resource, carrier in self._carriers():
            await self._write(resource, carrier, {})

    def _carriers(self) -> list[tuple[Resource, Object]]:
        pods = [] if self.pod is None else [(PODS, self.pod)]
        return [*[(PERSISTENT_VOLUME_CLAIMS, claim) for claim in self.claims], *pods]

    async def _write(
        self, resource: Resource, carrier: Object, annotations: dict[str, str], labels: dict[str, str] | None = None
    ) -> Object:
        """Set annotations and labels; with no annotations, remove note and mark. Returns the object as it is now."""
        meta = carrier.metadata
        desired: Json = {"metadata": {"name": meta.name, "namespace": meta.namespace, "annotations": annotations}}
        if labels:
            desired["metadata"]["labels"] = labels
        before = {} if annotations else {"metadata": {"annotations": {SCALE_IN_TIME: "", PVC_DEFER_DELETING: ""}}}
        return await Apply(resource, desired, carrier, applied=before)


def cached(ctx: ClusterContext, component: str, body: Json, ordinal: int) -> PodRemoval:
    """A pod and its claims from the caches; `body` is the StatefulSet."""
    pod = pod_name(ctx.tc, component, ordinal)
    listers, namespace = ctx.listers, ctx.namespace
    claims = [listers.persistent_volume_claims.get(namespace, name) for name in claims_of_templates(body, pod)]
    found = tuple(filter(None, claims))
    return PodRemoval(ctx, component, ordinal, OrdinalSet(ordinal), listers.pods.get(namespace, pod), found)


def live(
    ctx: ClusterContext, component: str, body: Json, ordinal: int, staying: OrdinalSet | None = None
) -> PodRemoval:
    """A pod and its claims, read from the API server; without `staying`, all pods below this one stay.

    Raises ApiError, TransportError.
    """
    pod = pod_name(ctx.tc, component, ordinal)
    find, namespace = ctx.deps.client.find, ctx.namespace
    claims = (find(PERSISTENT_VOLUME_CLAIMS, name, namespace) for name in claims_of_templates(body, pod))
    found = tuple(claim for claim in claims if claim is not None)
    stays = OrdinalSet(ordinal) if staying is None else staying
    return PodRemoval(ctx, component, ordinal, stays, find(PODS, pod, namespace), found)


def claims_of_templates(body: Json, pod: str) -> list[str]:
    """The names of the claims that a StatefulSet creates for a pod."""
    return [pvc_name(each["metadata"]["name"], pod) for each in body["spec"].get("volumeClaimTemplates") or ()]
