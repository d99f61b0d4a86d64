"""What this process wrote and the cache has not seen yet (F6)."""

import msgspec

from controllers.own_write import OwnWrite
from kube.objects import Object


def version(number: str, uid: str = "u") -> Object:
    meta = {"name": "basic", "namespace": "ns", "uid": uid, "resourceVersion": number}
    return Object(msgspec.json.encode({"metadata": meta}))


def test_F6_older_than_the_own_write_is_not_acted_on() -> None:
    write = OwnWrite()
    assert not write.is_unseen(version("5"))
    write.remember(version("10"))
    assert write.is_unseen(version("9")), "compared as numbers"
    assert not write.is_unseen(version("10"))
    assert not write.is_unseen(version("9")), "once seen, nothing is expected any more"


def test_F6_another_object_of_the_name_is_no_older_state() -> None:
    write = OwnWrite()
    write.remember(version("10"))
    assert not write.is_unseen(version("9", uid="other"))


def test_F6_a_version_that_is_no_number_compares_with_nothing() -> None:
    write = OwnWrite()
    write.remember(version("10"))
    assert not write.is_unseen(version("abc"))
    write.remember(version("abc"))
    assert not write.is_unseen(version("1"))
