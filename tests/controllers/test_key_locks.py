"""Two controllers never act for one object at a time (I35)."""

from contextlib import ExitStack

from controllers.key_locks import KeyLocks
from kube.resources import PODS, SERVICES
from ports.fencing import OpenFence, SoleOwner


def test_I35_only_one_acts_for_an_object_and_others_are_free() -> None:
    key_locks = KeyLocks(SoleOwner(OpenFence()))
    wanted = [(PODS, "ns/a"), (PODS, "ns/a"), (PODS, "ns/b"), (SERVICES, "ns/a")]
    with ExitStack() as locked:
        assert [True, False, True, True] == [locked.enter_context(key_locks.try_lock(*each)) for each in wanted]


def test_I35_who_did_not_get_a_turn_does_not_end_that_of_another() -> None:
    key_locks = KeyLocks(SoleOwner(OpenFence()))
    with key_locks.try_lock(PODS, "ns/a"):
        with key_locks.try_lock(PODS, "ns/a"):
            pass
        with key_locks.try_lock(PODS, "ns/a") as still:
            assert not still
    with key_locks.try_lock(PODS, "ns/a") as again:
        assert again
