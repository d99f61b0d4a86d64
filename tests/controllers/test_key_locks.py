"""Two controllers never act for one cluster at a time (I35)."""

from controllers.key_locks import KeyLocks


def test_I35_only_one_acts_for_a_cluster_and_others_are_free() -> None:
    key_locks = KeyLocks()
    with key_locks.try_lock("ns/a") as first, key_locks.try_lock("ns/a") as second, key_locks.try_lock("ns/b") as other:
        assert (True, False, True) == (first, second, other)


def test_I35_who_did_not_get_a_turn_does_not_end_that_of_another() -> None:
    key_locks = KeyLocks()
    with key_locks.try_lock("ns/a"):
        with key_locks.try_lock("ns/a"):
            pass
        with key_locks.try_lock("ns/a") as still:
            assert not still
    with key_locks.try_lock("ns/a") as again:
        assert again
