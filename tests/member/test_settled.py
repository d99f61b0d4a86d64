"""What was compared and needed nothing is compared again only when something of it has changed (PERF-6)."""

from kube.objects import Object
from kube.resources import SERVICES
from member.memory.settled import Settled

_RAW = b'{"metadata":{"name":"demo-pd","namespace":"ns"}}'


def test_PERF_6_the_same_object_and_wish_are_settled() -> None:
    settled, there = Settled(), Object(_RAW)

    settled.note(SERVICES, there, {"spec": {"type": "ClusterIP"}})

    assert settled.holds(SERVICES, there, {"spec": {"type": "ClusterIP"}})


def test_PERF_6_another_version_another_wish_and_another_question_are_open() -> None:
    settled, there = Settled(), Object(_RAW)

    settled.note(SERVICES, there, {"spec": {"type": "ClusterIP"}})

    assert not settled.holds(SERVICES, Object(_RAW), {"spec": {"type": "ClusterIP"}})
    assert not settled.holds(SERVICES, there, {"spec": {"type": "NodePort"}})
    assert not settled.holds("another question", there, {"spec": {"type": "ClusterIP"}})
