from hypothesis import given
from hypothesis import strategies as st

from ports.ageing import Ageing, Entry

KEYS = st.sampled_from("abcd")


def test_forgets_an_entry_that_was_not_noted_for_so_long() -> None:
    known = Ageing[str, int](lasts=10.0)
    known.note("a", 1, 0.0)
    assert 1 == known.get("a", 9.9)
    assert None is known.get("a", 10.0)


def test_a_forgotten_entry_takes_no_memory_after_the_next_note() -> None:
    known = Ageing[str, int](lasts=10.0)
    known.note("a", 1, 0.0)
    known.note("b", 2, 5.0)
    known.note("c", 3, 10.0)
    assert ["b", "c"] == list(known)


def test_the_entry_noted_longest_ago_makes_room() -> None:
    known = Ageing[str, int](most=2)
    known.note("a", 1)
    known.note("b", 2)
    known.note("a", 3)
    known.note("c", 4)
    assert ["a", "c"] == list(known)
    assert "c" == known.newest()


def test_a_note_in_time_continues_the_age_of_an_entry() -> None:
    known = Ageing[str, int](lasts=10.0)
    known.note("a", 1, 0.0)
    known.note("a", 2, 9.0)
    assert Entry(3, since=0.0, at=18.0) == known.note("a", 3, 18.0)


def test_a_late_note_begins_the_age_anew() -> None:
    known = Ageing[str, int](lasts=10.0)
    known.note("a", 1, 0.0)
    assert Entry(2, since=10.0, at=10.0) == known.touch("a", lambda: 2, 10.0)


def test_a_touch_keeps_the_value() -> None:
    known = Ageing[str, int](lasts=10.0)
    known.touch("a", lambda: 1, 0.0)
    assert Entry(1, since=0.0, at=5.0) == known.touch("a", lambda: 2, 5.0)


def test_a_dropped_entry_is_unknown() -> None:
    known = Ageing[str, int]()
    known.note("a", 1)
    assert 1 == known.drop("a")
    assert None is known.drop("a")
    assert None is known.newest()


@given(st.lists(st.tuples(KEYS, st.integers(0, 9))), st.integers(1, 20), st.integers(1, 3))
def test_keeps_the_latest_notes_of_distinct_keys(notes: list[tuple[str, int]], lasts: int, most: int) -> None:
    known, now, latest = Ageing[str, int](lasts, most), 0, dict[str, int]()
    for key, later in notes:
        now += later
        known.note(key, now, now)
        latest.pop(key, None)
        latest[key] = now
    young = [key for key, at in latest.items() if now - at < lasts]
    assert young[-most:] == list(known)
