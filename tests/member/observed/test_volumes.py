"""`status.<component>.volumes`: the summary of the volumes of all pods (lifecycle.md 5.8)."""

import msgspec
import pytest

from apis.shared import StorageVolumeStatus
from member.observed.claims import ActualVolume, DesiredVolume, desired_volumes, volume_statuses
from tests.member.clusters import cluster
from tests.member.recordings import Recording

WANTED = DesiredVolume("tikv", "20Gi", "fast")
OLD = ActualVolume("tikv", "10Gi", "slow")
NEW = ActualVolume("tikv", "20480Mi", "fast")


def status(*actual: ActualVolume, wanted: DesiredVolume = WANTED, unreadable: str = "none") -> StorageVolumeStatus:
    (found,) = volume_statuses([wanted], actual, frozenset({unreadable})).values()
    return found


@pytest.mark.parametrize("recording", ["basic", "basic-storagevolumes", "gcp"])
@pytest.mark.rule("lifecycle-5.8")
def test_the_volumes_are_those_that_v1_6_saw(recording: str) -> None:
    recorded = Recording(recording)
    (raw,), (tc,) = recorded.raw_clusters, recorded.clusters
    for kind in ("pd", "tikv", "tidb"):
        volumes = [
            ActualVolume(
                claim["metadata"]["name"].partition(f"-{tc.metadata.name}-{kind}-")[0],
                claim["status"]["capacity"]["storage"],
                claim["spec"]["storageClassName"],
            )
            for claim in recorded.claims
            if claim["metadata"]["labels"]["app.kubernetes.io/component"] == kind
        ]
        expected = raw["status"][kind].get("volumes") or {}
        assert expected == msgspec.to_builtins(volume_statuses(desired_volumes(tc, kind), volumes))


@pytest.mark.rule("lifecycle-5.8")
def test_volumes_that_are_not_as_wanted_yet_are_the_current_ones() -> None:
    found = status(NEW, OLD, OLD)
    assert (3, 2, "10Gi", "slow") == (
        found.bound_count,
        found.current_count,
        found.current_capacity,
        found.current_storage_class,
    )
    assert (1, "20Gi", "fast") == (found.modified_count, found.modified_capacity, found.modified_storage_class)
    assert (1, "20Gi") == (found.resized_count, found.resized_capacity)


@pytest.mark.rule("F48")
def test_sizes_are_compared_per_volume_name_and_by_value() -> None:
    wanted = [WANTED, DesiredVolume("tikv-wal", "1Gi", "")]
    found = volume_statuses(wanted, [NEW, ActualVolume("tikv-wal", "1Gi", "any"), ActualVolume("other", "1Gi", "any")])
    assert {"tikv": (1, 1, "20Gi"), "tikv-wal": (1, 1, "1Gi")} == {
        name: (each.modified_count, each.current_count, each.current_capacity) for name, each in found.items()
    }


@pytest.mark.rule("lifecycle-5.8")
def test_a_volume_without_a_pod_is_left_out() -> None:
    assert {} == volume_statuses([WANTED], [ActualVolume("other", "20Gi", "fast")])


@pytest.mark.rule("lifecycle-5.8")
def test_without_a_named_class_the_actual_one_is_shown() -> None:
    found = status(OLD, wanted=DesiredVolume("tikv", "10Gi", ""))
    assert (1, "slow") == (found.modified_count, found.modified_storage_class)


@pytest.mark.rule("lifecycle-5.8")
def test_a_class_that_cannot_be_read_is_unknown_and_only_the_size_counts() -> None:
    found = status(ActualVolume("tikv", "20Gi", "slow"), unreadable="fast")
    assert (1, "<unknown>") == (found.modified_count, found.modified_storage_class)


@pytest.mark.rule("lifecycle-10.1")
def test_further_volumes_inherit_the_class_and_a_size_is_a_must() -> None:
    tc = cluster(
        tikv={
            "storageClassName": "fast",
            "storageVolumes": [
                {"name": "wal", "storageSize": "1Gi"},
                {"name": "log", "storageSize": "2Gi", "storageClassName": "slow"},
            ],
        },
        pd={"requests": {}},
    )
    assert [
        DesiredVolume("tikv", "1Gi", "fast"),
        DesiredVolume("tikv-wal", "1Gi", "fast"),
        DesiredVolume("tikv-log", "2Gi", "slow"),
    ] == desired_volumes(tc, "tikv")
    assert [] == desired_volumes(tc, "pd")
