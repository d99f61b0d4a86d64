"""The check that the remaining stores have room for the data of the leaving ones (lifecycle.md 8.5)."""

from collections.abc import Sequence

import pytest

from dataplane.pd import Store
from member.stores.kind import Placement, shortage

ANYWHERE = Placement(0.8)


def store(state: str = "Up", *, free: int = 50, used: int = 50, regions: int = 1000, size: int | None = None) -> Store:
    """A store with a disk of 100 GiB; sizes in GiB."""
    sizes = ("100GiB", f"{free}GiB", f"{used}GiB")
    return Store(1, "t-0:20160", state, region_count=regions, region_size=size and size * 1024, sizes=sizes)


UNKNOWN = Store(1, "t-0:20160", "Up", region_count=1000)


@pytest.mark.parametrize(
    ("leaving", "staying"),
    [
        ([store()], [store(), store()]),
        ([store(used=30)], [store(free=50)]),
        ([store(used=31), UNKNOWN], [store(free=50)]),
        ([store(used=31)], [store(free=50), UNKNOWN]),
        ([store(used=31)], []),
        ([store(used=30)], [store("Disconnected", free=50)]),
        ([store("Offline", used=90, size=10)], [store(free=30)]),
        ([store(used=4)], [store(free=12, regions=99)]),
    ],
    ids=["two", "exact", "unknown leaves", "unknown stays", "none stays", "silent", "has moved", "few regions"],
)
@pytest.mark.rule("lifecycle-8.5")
def test_data_that_may_fit_is_let_go(leaving: Sequence[Store], staying: Sequence[Store]) -> None:
    assert "" == shortage(leaving, staying, ANYWHERE)


@pytest.mark.parametrize(
    ("leaving", "staying", "held", "room"),
    [
        ([store(used=31)], [store(free=50)], "31.0 GiB", "30.0 GiB"),
        ([store(used=20), store(used=20)], [store(free=50)], "40.0 GiB", "30.0 GiB"),
        ([store(used=20)], [store(free=10), store(free=30)], "20.0 GiB", "10.0 GiB"),
        ([store(used=1)], [store("Down", free=90), store(free=20)], "1.0 GiB", "0.0 MiB"),
        ([store("Offline", used=90, size=40)], [store(free=50)], "40.0 GiB", "30.0 GiB"),
        ([store("Up", used=90, size=0)], [store(free=50)], "90.0 GiB", "30.0 GiB"),
        ([store(used=5)], [store(free=12, regions=99)], "5.0 GiB", "4.0 GiB"),
        ([store(used=4)], [store(free=12)], "4.0 GiB", "0.0 MiB"),
    ],
    ids=[
        "one",
        "both leave",
        "one is low",
        "down takes none",
        "Offline",
        "new PD leader",
        "few regions",
        "many regions",
    ],
)
@pytest.mark.rule("lifecycle-8.5")
def test_data_that_cannot_fit_is_named_with_its_figures(
    leaving: Sequence[Store], staying: Sequence[Store], held: str, room: str
) -> None:
    expected = (
        f"{held} of data would have to move, but the stores that stay have room for {room}: PD gives no store two "
        "replicas of a region, and none to a store with less than 20% of its disk free (low-space-ratio 0.8)"
    )
    assert expected == shortage(leaving, staying, ANYWHERE)


@pytest.mark.parametrize(("others", "fits"), [(3, False), (4, True)])
@pytest.mark.rule("lifecycle-8.5")
def test_no_store_takes_more_than_one_replica_of_everything(others: int, *, fits: bool) -> None:
    """40 GiB have three replicas; one of the stores that stay is full, so that the others need to be three."""
    used = 120 // (others + 1)
    staying = [store(free=10, used=used), *(store(free=90, used=used) for _ in range(others - 1))]
    assert fits is (shortage([store(used=used)], staying, Placement(0.8, replicas=3)) == "")
