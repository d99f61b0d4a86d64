"""The reconciles that a change of a Secret triggers."""

import pytest

from kube.client import Client
from kube.resources import BACKUPS, DM_CLUSTERS, TIDB_CLUSTERS
from kube.secret_reads import SecretReads
from ports.transport import Request, Response
from tests.kube.fakes import ScriptedTransport, answer

A, B = (TIDB_CLUSTERS, "ns/a"), (BACKUPS, "ns/b")


def _secret() -> Response:
    return answer(200, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ns"}})


@pytest.fixture
def reads() -> SecretReads:
    return SecretReads(Client(ScriptedTransport(lambda _: _secret())))


def test_a_change_of_a_secret_triggers_its_readers(reads: SecretReads) -> None:
    for reader in (A, B):
        assert reads.find(reader, "s", "ns") is not None
    reads.find((DM_CLUSTERS, "ns/a"), "other", "ns")
    assert {A, B} == set(reads.changed("ns", "s"))
    assert (1, 1, 0) == tuple(map(reads.changes, (A, B, (DM_CLUSTERS, "ns/a"))))


def test_many_changes_trigger_a_reader_once_until_it_reads_again(reads: SecretReads) -> None:
    reads.find(A, "s", "ns")
    assert 1 == sum(len(reads.changed("ns", "s")) for _ in range(100))
    reads.find(A, "s", "ns")
    assert [A] == list(reads.changed("ns", "s"))


def test_a_change_during_a_read_is_a_change_after_it() -> None:
    def changing(_: Request) -> Response:
        tried.changed("ns", "s")
        return _secret()

    tried = SecretReads(Client(ScriptedTransport(changing)))
    before = tried.changes(A)
    tried.find(A, "s", "ns")
    assert before + 1 == tried.changes(A)


def test_does_not_trigger_a_forgotten_reader(reads: SecretReads) -> None:
    reads.find(A, "s", "ns")
    reads.find(B, "s", "ns")
    reads.forget(A)
    assert [B] == list(reads.changed("ns", "s"))
    assert 0 == reads.changes(A)


def test_only_the_namespace_of_the_secret_counts(reads: SecretReads) -> None:
    reads.find(A, "s", "ns")
    assert [] == list(reads.changed("other", "s"))
