"""What this process wrote and the cache has not seen yet (F6)."""

import msgspec

from controllers.tidbcluster.own_writes import OwnWrites
from kube.objects import Object


def version(number: str, uid: str = "u") -> Object:
    meta = {"name": "basic", "namespace": "ns", "uid": uid, "resourceVersion": number}
    return Object(msgspec.json.encode({"metadata": meta}))


def test_F6_older_than_the_own_write_is_not_acted_on() -> None:
    writes = OwnWrites()
    assert not writes.unseen(version("5"))
    writes.remember(version("10"))
    assert writes.unseen(version("9")), "compared as numbers"
    assert not writes.unseen(version("10"))
    assert not writes.unseen(version("9")), "once seen, nothing is expected any more"


def test_F6_another_object_of_the_name_is_no_older_state() -> None:
    writes = OwnWrites()
    writes.remember(version("10"))
    assert not writes.unseen(version("9", uid="other"))


def test_F6_a_version_that_is_no_number_compares_with_nothing() -> None:
    writes = OwnWrites()
    writes.remember(version("10"))
    assert not writes.unseen(version("abc"))
    writes.remember(version("abc"))
    assert not writes.unseen(version("1"))


def test_F6_what_is_forgotten_is_not_waited_for() -> None:
    writes = OwnWrites()
    writes.remember(version("10"))
    writes.forget("ns/basic")
    assert not writes.unseen(version("9"))
