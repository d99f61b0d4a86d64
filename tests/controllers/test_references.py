"""A change of an object enqueues the objects that refer to it (CW-2)."""

import msgspec
import pytest

from controllers.references import References
from kube.objects import Json, Object


def an_object(name: str, version: str = "1", *targets: str) -> Object:
    meta: Json = {"name": name, "namespace": "ns", "resourceVersion": version}
    return Object(msgspec.json.encode({"metadata": meta, "targets": targets}))


def refers_to(source: Object) -> list[str]:
    return [f"ns/{each}" for each in source.decode()["targets"]]


@pytest.mark.rule("CW-2")
def test_an_object_is_reconciled_when_one_that_it_refers_to_changes() -> None:
    references, queue = References(refers_to), []
    noting, told = references.noting(), references.enqueueing(lambda key, _priority=0: queue.append(key))
    noting.on_add(an_object("a", "1", "x", "y"), True)
    noting.on_add(an_object("b", "1", "x"), False)
    told.on_add(an_object("x"), False)
    assert ["ns/a", "ns/b"] == queue

    noting.on_update(an_object("a", "1", "x", "y"), an_object("a", "2", "y"))
    told.on_update(an_object("x"), an_object("x", "2"))
    told.on_update(an_object("y"), an_object("y", "2"))
    assert ["ns/b", "ns/a"] == queue[2:]

    noting.on_delete(an_object("b", "1", "x"))
    told.on_delete(an_object("x", "3"))
    told.on_update(an_object("y", "2"), an_object("y", "2"))  # a resync
    assert 4 == len(queue)
