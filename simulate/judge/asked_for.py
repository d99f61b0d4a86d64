"""The check that pods get only the template that the user's spec requires (I42).

The reference is the operator's last write, together with the cluster that it then knew: another template requires
another spec or other annotations of the cluster, or the begin or end of a restore to a point in time. A template that
another client has written must neither be rolled out nor stay, and only a partition above the ordinals keeps it from
all pods.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from apis.decoding import without_nulls
from kube.objects import Json
from kube.resources import CONTROLLER_REVISIONS, RESTORES
from simulate.engine.components import managed_components
from simulate.engine.state import NEVER, State, bound, is_outdated, partition
from simulate.invariants.facts import annotations, is_held, is_refused, is_suspended
from simulate.invariants.operator_write import OperatorWrite


@dataclass(frozen=True, slots=True)
class _Written:
    """The template that the operator wrote last, as the API server completed it, and the wishes that decided it."""

    uid: str
    template: Json
    wishes: Json


class AskedFor:
    """Follows the StatefulSets of a cluster; the initial ones count as required."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._written: dict[str, _Written] = {}
        self._first: dict[str, Json] = {}
        """The first template of each StatefulSet, by UID."""
        for component in managed_components():
            self._note(component, state.cluster)

    def _note(self, component: str, cluster: Json | None) -> None:
        live = self._state.stateful_set(component)
        if live is None:
            return
        uid, template, before = live["metadata"]["uid"], live["spec"]["template"], self._written.get(component)
        # an identical recreation is for the wishes of the previous one
        is_same = before is not None and before.uid != uid and before.template == template
        wishes = before.wishes if before is not None and is_same else self._wishes(cluster)
        self._written[component] = _Written(uid, template, wishes)

    def _known(self, component: str, live: Json | None) -> _Written | None:
        """The record of the write to this very StatefulSet."""
        found = self._written.get(component)
        return found if found and live and found.uid == live["metadata"]["uid"] else None

    def _wishes(self, cluster: Json | None) -> Json:
        """What decides a template; a restore to a point in time keeps TiKV from collecting garbage."""
        to_a_point = (each for each in self._state.all(RESTORES) if each["spec"].get("restoreMode") == "pitr")
        going_on = [each["metadata"]["uid"] for each in to_a_point if not _has_ended(each)]
        return {"spec": (cluster or {}).get("spec"), "annotations": annotations(cluster), "restores": going_on}

    def before(self, write: OperatorWrite) -> str | None:
        """The violation of a write while a foreign template is in place, or of a restart with the same template."""
        if needless := self._needless(write):
            return needless
        known = self._known(write.component, write.live)
        if write.live is None or known is None or write.live["spec"]["template"] == known.template:
            return None
        component, hit = write.restarts
        if write.changes_template and write.partition[1] < bound(write.live):
            return f"{write.call} puts the template of {component} right and has Kubernetes restart pods for that"
        if hit and not write.changes_template:
            pod = self._state.pod_name(component, hit[0])
            return f"{write.call} restarts {pod} for a template without a change of the spec"
        return None

    def _needless(self, write: OperatorWrite) -> str | None:
        """The violation of a write that restarts a pod for a revision with the template that it runs.

        It does not count after a change of the template, which may have been taken back in the middle of a roll.
        """
        if write.live is None or not write.component:
            return None
        template = write.live["spec"].get("template")
        first = self._first.setdefault(write.live["metadata"]["uid"], template)
        component, hit = write.restarts
        if write.changes_template or not hit or first != template:
            return None
        pod = self._state.pods(component)[hit[0]]["metadata"]
        names = pod["labels"].get("controller-revision-hash", ""), write.live["status"]["updateRevision"]
        run, newest = (self._state.get(CONTROLLER_REVISIONS, name) for name in names)
        if run is None or newest is None or without_nulls(run["data"]) != without_nulls(newest["data"]):
            return None
        return f"{write.call} restarts {pod['name']} for revision {names[1]}, whose template it runs as {names[0]}"

    def after(self, write: OperatorWrite) -> str | None:
        """The violation of a write's template."""
        component = write.component
        live = self._state.stateful_set(component) if component else None
        if live is None or not (write.live or write.call.method == "POST"):
            return None
        if write.live is not None and write.live["spec"]["template"] == live["spec"]["template"]:
            # a foreign change, which may stay for a while
            return None
        known, cluster = self._known(component, live), write.seen or write.known
        if known is not None and known.template == live["spec"]["template"]:
            # a change of the spec may have to wait
            return None
        self._note(component, cluster)
        if known is None or known.wishes != self._wishes(cluster):
            return None
        return f"{write.call} gives the pods of {component} another template without a change of the spec"

    def lasting(self, state: State) -> Iterator[str]:
        """Violations: a foreign template that stays, with a partition that would let its next pod through."""
        cluster = state.cluster
        if cluster is None or is_held(cluster) or is_refused(cluster):
            return
        for component, live in state.stateful_sets.items():
            if is_suspended(cluster, component):
                continue
            known, template = self._known(component, live), live["spec"]["template"]
            if known is not None and known.template is not template:
                if known.template != template:
                    yield f"the pods of {component} have a template without a change of the spec"
                else:
                    # the same tree takes no time to compare
                    self._written[component] = replace(known, template=template)
            outdated = any(is_outdated(live, pod) for pod in state.pods(component).values())
            status, held = live.get("status") or {}, partition(live["spec"]["updateStrategy"])
            newest = status.get("updateRevision")
            at_rest = newest is not None and status.get("currentRevision") == newest and not outdated
            if at_rest and held < min(bound(live), NEVER):
                yield f"the partition of {component} stays at {held} though no pod of it is to be restarted"


def _has_ended(restore: Json) -> bool:
    return (restore.get("status") or {}).get("phase") in ("Complete", "Failed", "Invalid")
