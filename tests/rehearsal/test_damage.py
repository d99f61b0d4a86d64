"""What frames of a drill say about a loss."""

from collections.abc import Mapping
from dataclasses import replace

from rehearsal.damage import Damage, Failover, Outage, Spell, damage
from rehearsal.forecast import Frame, Pod, Regions
from tests.rehearsal.test_forecast import frame, pod, pods

WHOLE = pods("pd-0", "pd-1", "pd-2", "tikv-0", "tikv-1", "tikv-2")


def seen(at: float, *down: str, added: Mapping[str, Pod] | None = None, hurt: Regions | None = None) -> Frame:
    """A frame of three PDs and TiKVs, without those that are down."""
    there = WHOLE | {name: pod(name, ready=False) for name in down} | dict(added or {})
    return replace(frame(at, there), regions=hurt or Regions(30))


def test_a_loss_that_nothing_feels_leaves_all_whole_at_once() -> None:
    found = damage([seen(0), seen(60)], 0)
    assert (0.0, [], [], False) == (found.whole, found.outages, found.spells, found.stops)


def test_pd_without_a_majority_stops_until_it_has_one_again() -> None:
    found = damage([seen(0), seen(10, "pd-0"), seen(12, "pd-0", "pd-1"), seen(30, "pd-1"), seen(40)], 10)
    assert [Outage("pd", 2, 18, 1, 2)] == found.outages
    assert (True, 30.0) == (found.stops, found.whole)


def test_what_is_still_down_at_the_end_has_no_end() -> None:
    found = damage([seen(0), seen(10, "pd-0", "pd-1")], 10)
    assert ([Outage("pd", 0, None, 1, 2)], None) == (found.outages, found.whole)


def test_an_outage_that_is_over_before_the_loss_is_none_of_it() -> None:
    found = damage([seen(0), seen(2, "pd-0", "pd-1"), seen(5), seen(10), seen(20)], 10)
    assert ([], 0.0) == (found.outages, found.whole)


def test_regions_say_whether_tikv_serves() -> None:
    frames = [
        seen(0),
        seen(10, "tikv-0", "tikv-1", hurt=Regions(30, without_spare=30, without_majority=7)),
        seen(40, hurt=Regions(30, without_spare=12)),
        seen(70),
    ]
    found = damage(frames, 10)
    assert [] == found.outages
    assert [Spell("without_majority", 0, 30, 7, 30), Spell("without_spare", 0, 60, 30, 30)] == found.spells
    assert found.stops


def test_regions_that_never_had_a_spare_replica_are_not_hurt() -> None:
    found = damage([seen(0, hurt=Regions(30, without_spare=30)), seen(1, hurt=Regions(30, without_spare=30))], 0)
    assert [] == found.spells


def test_the_lost_pod_is_paired_with_its_substitute() -> None:
    lost = {"tikv-0": "tikv"}
    frames = [
        seen(0),
        seen(10, "tikv-0"),
        replace(seen(310, "tikv-0"), lost=lost),
        replace(seen(311, "tikv-0", added={"tikv-3": pod("tikv-3", ready=False)}), lost=lost),
        replace(seen(320, "tikv-0", added={"tikv-3": pod("tikv-3")}), lost=lost),
    ]
    found = damage(frames, 10)
    assert [Failover("tikv-0", "tikv", 300, "tikv-3", 310)] == found.failovers
    assert 310.0 == found.whole


def test_data_without_a_copy_is_worse_than_any_outage() -> None:
    def of(hurt: Regions) -> Damage:
        return damage([seen(0), seen(10, hurt=hurt), seen(20)], 10)

    nothing, spare = damage([seen(0), seen(20)], 10), of(Regions(30, without_spare=30))
    majority, copy = of(Regions(30, without_majority=30)), of(Regions(30, without_copy=1))
    assert nothing.severity < spare.severity < majority.severity < copy.severity
