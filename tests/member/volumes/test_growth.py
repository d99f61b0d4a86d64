"""The phases of a growing claim, as a function of its status (lifecycle.md 10.2)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from member.outcome import Wait
from member.volumes.growth import (
    Ask,
    Begin,
    Finish,
    Refuse,
    Settled,
    Step,
    VolumeClaim,
    WaitForClass,
    Wanted,
    next_step,
    reasons,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
CLAIM = VolumeClaim("tikv-a-tikv-0", requested="1Gi", capacity="1Gi", storage_class="fast", can_grow=True)
SIZE, CLASS = "spec.tikv.requests.storage", "spec.tikv.storageClassName"
WANTED = Wanted(SIZE, "2Gi", CLASS, "fast")

BEGUN = replace(CLAIM, requested="2Gi", spec_revision="1", spec_size="2Gi", changed_at="2026-01-01T23:59:59Z")
ARRIVED = replace(BEGUN, capacity="2Gi", status_revision="1", status_size="2Gi")


def told(step: Step) -> str:
    """The step without its words."""
    return type(step).__name__


@pytest.mark.parametrize(
    ("claim", "size", "expected"),
    [
        (CLAIM, "1Gi", Settled()),
        (CLAIM, "1024Mi", Settled()),
        (CLAIM, "2Gi", Begin(1)),
        (replace(CLAIM, can_grow=None), "2Gi", Begin(1)),
        (replace(BEGUN, requested="1Gi"), "2Gi", Ask()),
        (replace(BEGUN, capacity="2Gi"), "2Gi", Finish()),
        (replace(BEGUN, capacity="3Gi", requested="3Gi"), "3Gi", Begin(2)),
        (BEGUN, "4Gi", Begin(2)),
        (ARRIVED, "2Gi", Settled()),
        (replace(ARRIVED, changed_at=""), "3Gi", Begin(2)),
        (replace(CLAIM, requested="2Gi"), "2Gi", Settled()),
        (replace(CLAIM, requested="1500Mi", capacity="2Gi"), "1500Mi", Settled()),
        (replace(CLAIM, requested="1500Mi", capacity="2Gi"), "1536000Ki", Settled()),
        (replace(CLAIM, requested="1500Mi", capacity="2Gi"), "2Gi", Begin(1)),
        (replace(CLAIM, requested="1500Mi", capacity="2Gi", can_grow=False), "2Gi", Settled()),
        (replace(BEGUN, spec_size="1500Mi", requested="1500Mi", capacity="2Gi"), "1500Mi", Finish()),
    ],
)
@pytest.mark.rule("lifecycle-10.2")
def test_the_next_step_follows_from_sizes_and_revisions(claim: VolumeClaim, size: str, expected: Step) -> None:
    assert expected == next_step(claim, replace(WANTED, size=size), lambda: NOW)


@pytest.mark.rule("lifecycle-10.2")
def test_waits_for_a_claim_with_a_changed_request() -> None:
    expected = Wait("waiting for PersistentVolumeClaim tikv-a-tikv-0 to grow from 1Gi to 2Gi")
    assert expected == next_step(BEGUN, WANTED, lambda: NOW)


@pytest.mark.parametrize(("age", "expected"), [(59, "Wait"), (60, "Begin"), (-1, "Wait"), (-86400, "Begin")])
@pytest.mark.rule("lifecycle-10.2", "F44")
def test_two_changes_of_a_claim_are_a_minute_apart(age: int, expected: str) -> None:
    claim = replace(ARRIVED, changed_at=(NOW - timedelta(seconds=age)).isoformat())
    assert expected == told(next_step(claim, replace(WANTED, size="3Gi"), lambda: NOW))


@pytest.mark.parametrize(
    ("claim", "wanted", "why"),
    [
        (CLAIM, replace(WANTED, size="512Mi"), "has 1Gi and cannot shrink to 512Mi; set 1Gi or more"),
        (
            replace(CLAIM, requested="1500Mi", capacity="2Gi"),
            replace(WANTED, size="1400Mi"),
            "has 1500Mi and cannot shrink to 1400Mi; set 1500Mi or more",
        ),
        (CLAIM, replace(WANTED, storage_class="slow"), "has storage class fast, which cannot be changed to slow"),
        (replace(CLAIM, can_grow=False), WANTED, "does not exist or lacks allowVolumeExpansion"),
        (BEGUN, replace(WANTED, size="1Gi"), "requests 2Gi, which Kubernetes does not lower to the current size"),
    ],
)
@pytest.mark.rule("lifecycle-10.2")
def test_an_impossible_change_names_field_claim_and_way_out(claim: VolumeClaim, wanted: Wanted, why: str) -> None:
    step = next_step(claim, wanted, lambda: NOW)
    assert isinstance(step, Refuse)
    field = SIZE if wanted.storage_class == WANTED.storage_class else CLASS
    assert step.why.startswith(f"{field}: PersistentVolumeClaim tikv-a-tikv-0 has")
    assert why in step.why


@pytest.mark.rule("lifecycle-10.2")
def test_one_sentence_refuses_all_claims_that_are_alike() -> None:
    refused = [Refuse(SIZE, f"tikv-a-tikv-{ordinal}", "has 1Gi and cannot shrink") for ordinal in range(4)]
    other = Refuse(CLASS, "tikv-a-tikv-0", "has storage class fast")
    whole = "spec.tikv.requests.storage: PersistentVolumeClaim tikv-a-tikv-0, like 3 others, has 1Gi and cannot shrink"
    assert [whole, other.why] == reasons([*refused, other])
    (both,) = reasons(refused[:2])
    assert both.endswith("tikv-a-tikv-0, like tikv-a-tikv-1, has 1Gi and cannot shrink")


@pytest.mark.rule("lifecycle-10.2")
def test_a_class_that_is_not_requested_stays_unchanged() -> None:
    assert Settled() == next_step(CLAIM, Wanted(SIZE, "1Gi", CLASS), lambda: NOW)


FASTER = Wanted(SIZE, "1Gi", CLASS, "faster", attributes_class="of-faster")
RECENT = (NOW - timedelta(hours=5)).isoformat()
LEFT = replace(CLAIM, spec_revision="1", spec_size="1Gi", spec_class="faster", changed_at=RECENT)
"""A claim whose change to the class `faster` was recorded, as v1.6 does before it calls the cloud."""
ASKED = replace(LEFT, attributes_class="of-faster")
BACK = replace(FASTER, storage_class="fast", attributes_class=None)
DONE = replace(ASKED, storage_class="faster", current_attributes_class="of-faster")


@pytest.mark.parametrize(
    ("claim", "wanted", "expected"),
    [
        (CLAIM, FASTER, Begin(1, "faster", "of-faster")),
        (CLAIM, replace(FASTER, size="2Gi"), Begin(1, "faster", "of-faster")),
        # the volume already has what the class asks for
        (replace(CLAIM, changed_at=RECENT), replace(FASTER, attributes_class=""), Begin(1, "faster", "")),
        (LEFT, FASTER, Ask("of-faster")),
        (replace(ASKED, modification="Pending"), FASTER, Ask("of-faster")),
        (DONE, FASTER, Finish()),
        (DONE, replace(FASTER, storage_class="fastest", attributes_class="of-fastest"), Finish()),
        # back, before a driver has begun, or after it has refused
        (ASKED, BACK, Begin(2, attributes_class=None)),
        (replace(ASKED, modification="Infeasible"), BACK, Begin(2, attributes_class=None)),
        (replace(ASKED, current_attributes_class="of-fast"), BACK, Begin(2, attributes_class="of-fast")),
        (ASKED, replace(FASTER, storage_class="other", attributes_class="of-other"), Begin(2, "other", "of-other")),
        # a full volume grows although its class has to wait
        (replace(CLAIM, changed_at=RECENT), replace(FASTER, size="2Gi"), Begin(1)),
    ],
)
@pytest.mark.rule("VMOD-5", "VMOD-7")
def test_the_next_step_towards_a_class(claim: VolumeClaim, wanted: Wanted, expected: Step) -> None:
    assert expected == next_step(claim, wanted, lambda: NOW)


@pytest.mark.parametrize(
    ("claim", "wanted", "what"),
    [
        (ASKED, FASTER, "to get storage class faster (its storage driver has not begun; does it support Volume"),
        (replace(ASKED, modification="InProgress", trouble="quota"), FASTER, "to get storage class faster (quota)"),
        (replace(ASKED, modification="InProgress"), BACK, "to get storage class faster first; its storage driver is"),
        (replace(CLAIM, changed_at=RECENT), FASTER, "can be changed again at 2026-01-02T01:00:00Z, as storage provi"),
    ],
)
@pytest.mark.rule("VMOD-6", "VMOD-7")
def test_waits_for_a_class(claim: VolumeClaim, wanted: Wanted, what: str) -> None:
    step = next_step(claim, wanted, lambda: NOW)
    assert isinstance(step, WaitForClass)
    assert what in step.what


def test_reports_a_class_that_the_driver_refuses() -> None:
    refused = replace(ASKED, modification="Infeasible", trouble="iops out of range")
    step = next_step(refused, FASTER, lambda: NOW)
    assert isinstance(step, Refuse)
    assert "the storage driver refuses faster (iops out of range); restore fast, or name another one" in step.why
