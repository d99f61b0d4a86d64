"""All recorded objects of a live v1.6 are taken over (design.md 3.5, objects.md 11, docs/migration.md). An observer
plans next to nothing, no database pod restarts, and v1.6 would find its records if it returned."""

import re
from collections.abc import Mapping

import pytest

from apis.cluster import Cluster
from apis.consent import ALLOWED_FROM
from kube.objects import Json
from kube.resources import TIDB_CLUSTERS
from ports.clock import FakeClock
from tests.definitions_of_v16 import definitions_of_v16
from tests.member.recordings import recorded
from tests.takeover.eyes_of_v16 import would_change
from tests.takeover.left_by_v16 import Left
from tests.takeover.observer import planned_writes

pytestmark = pytest.mark.slow

V17 = "v17"
"""Clusters of v1.7 (tests.member.test_recordings_of_v17)."""

RECORDINGS = (
    *("basic", "basic-storagevolumes", "basic-tls", "gcp", "heterogeneous", "tiflash"),
    *(
        "dev-components",
        "dev-tuned",
        "dev-logs",
        "dev-misc",
        "dev-ipv6",
        "dev-suspend",
        "dev-across",
        "dev-tls",
        "dev-dm",
        "dev-monitor",
    ),
    *("dev-init", "dev-backup", "dev-restore", "dev-schedule", "dev-bklife", "dev-bklife.truncate", "dev-bklife.stop"),
    *("dev-bklife.done", "dev-bklife.deleting", "dev-bklife.gone"),
    V17,
)
"""All of them; the two Kubernetes clusters of `dev-across` are one here."""

EXPLAINED = (
    # Discovery runs our image, with a Role that allows less
    r"patch (roles|deployments) \S+-discovery",
    r"note \S+ \S+",  # which labels and annotations are the spec's
    r"patch services \S+-tiproxy",  # publishNotReadyAddresses
    r"patch statefulsets \S+-(pump|dm-worker)",  # a partition above all pods
    # created by v1.7's start script, which recordings leave out
    r"POST http\S+:8301/api/v2/changefeeds",
    # v1.6 says the same in every round
    r"(POST|PUT) http\S+(:10080/labels|:3080/api/admin/config/|-pd\S*:2379/v3/lease/grant)",
    # ids of DMClusters, and labels of the volumes of the others
    r"patch (pods|persistentvolumeclaims) \S*sync-dm-\S+",
    r"patch persistentvolumes \S+",
    # monitors: names in DNS, the text of their configuration, and what v1.6 ignored
    r"create services (sync-mon|sixmon|safe-mon|watch)-monitor(-shard-1)?",
    r"patch configmaps (sync-mon|sixmon|safe-mon|watch)-monitor(-grafana)?",
    r"patch statefulsets (sixmon|watch)-monitor(-shard-1)?",
)
"""Intended writes of a take-over (docs/compat/take-over.md)."""

RESTARTED = re.compile(r"(sixmon|watch)-monitor-.*")
"""Pods of a TidbMonitor without a reloader, and of one with `grafana.logLevel`."""

BACK = {
    ("StatefulSet", "pump"): {"updateStrategy"},
    ("StatefulSet", "dm-worker"): {"updateStrategy"},
    ("Service", "tiproxy"): {"spec"},
    ("StatefulSet", "monitor"): {"template", "restarts"},
    ("ConfigMap", "monitor"): {"data"},
}
"""The changes that v1.6 would undo, by kind and component."""

RESTORED: Mapping[str, dict[tuple[str, str], set[str]]] = {"dev-restore": {("ConfigMap", "tikv"): {"data"}}}
"""The same where a restore to a point in time is over: v1.6 knows only from what its pod writes, which here is none."""

UNFINISHED: Mapping[str, dict[str, str]] = {
    "dev-suspend": {"sleepy": "Suspended"},
    "dev-across": {"south": "ReferenceNotAllowed"},
}
"""The reasons of the condition Progressing of clusters that are not done, by recording and cluster."""


@pytest.mark.parametrize("name", RECORDINGS)
@pytest.mark.rule("3.5")
def test_a_recorded_world_is_taken_over_and_may_go_back(name: str, clock: FakeClock) -> None:
    left = left_by_v16(name, clock)
    world, pods, before = left.world, left.pods(), left.objects()
    assert [] == left.not_ready()

    planned = planned_writes(world, 5.0)
    assert [] == [each for each in planned if not any(re.fullmatch(one, each) for one in EXPLAINED)]
    assert (pods, before) == (left.pods(), left.objects())

    world.run(35.0)
    now, after = left.pods(), left.objects()
    reasons = {tc.metadata.name: progress(left, tc) for tc in left.clusters}
    world.stop()
    assert dict.fromkeys(reasons, "Done") | UNFINISHED.get(name, {}) == reasons
    assert [] == [each for each, uid in pods.items() if now.get(each) != uid and not RESTARTED.fullmatch(each)]
    back = BACK | RESTORED.get(name, {})
    assert {} == {key: found for key, item in before.items() if (found := unexplained(item, after[key], back))}


def test_a_cluster_that_joined_one_of_another_namespace_is_taken_over_by_consent(clock: FakeClock) -> None:
    """Until then it runs on as it is, as above."""
    left = left_by_v16("dev-across", clock)
    north, south = left.clusters
    annotations = {ALLOWED_FROM: south.metadata.namespace}
    left.world.admin.patch(
        TIDB_CLUSTERS, north.metadata.name, north.metadata.namespace, {"metadata": {"annotations": annotations}}
    )
    pods = left.pods()
    left.world.run(40.0)
    reasons = [progress(left, tc) for tc in left.clusters]
    after = left.pods()
    left.world.stop()
    assert (["Done", "Done"], pods) == (reasons, after)


def progress(left: Left, tc: Cluster) -> str:
    """Why a cluster is or is not progressing."""
    cluster = left.live(tc.kind, tc.metadata.name, tc.metadata.namespace)
    return str(next(each["reason"] for each in cluster["status"]["conditions"] if each["type"] == "Progressing"))


def unexplained(before: Json, now: Json, back: Mapping[tuple[str, str], set[str]]) -> list[str]:
    """The unexplained changes that v1.6 would make in an object."""
    component = (before["metadata"].get("labels") or {}).get("app.kubernetes.io/component", "")
    return sorted(set(would_change(before, now)) - back.get((before["kind"], component), set()))


def left_by_v16(name: str, clock: FakeClock) -> Left:
    """The world of a recording; skips if the recordings are not beside the repository."""
    recording = recorded(name)
    crds = definitions_of_v16() if name != V17 else ()
    return Left(recording["items"], clock, recording.get("pvs", ()), crds)
