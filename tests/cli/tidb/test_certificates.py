"""`certs`: which certificates a cluster needs, and until when they hold (objects.md 9.1)."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from cli.failures import Failure
from kube.objects import Json
from kube.resources import SECRETS, TIDB_CLUSTERS
from tests.certificates import CLIENT, TODAY, Authority, secret_name
from tests.cli.tidb.typing_commands import Terminal
from tests.operator_world import NAMESPACE, OperatorWorld, sample


@pytest.fixture(scope="module")
def world() -> Iterator[OperatorWorld]:
    """A cluster with TLS that no operator manages, and one without."""
    world, authority = OperatorWorld(), Authority()
    tree = sample("basic")
    tree["spec"]["tlsCluster"] = {"enabled": True}
    del tree["spec"]["tidb"]
    for made in (tree, sample("basic") | {"metadata": {"name": "plain"}}):
        world.admin.create(TIDB_CLUSTERS, made, NAMESPACE)
    secrets: dict[str, Json] = {
        "pd": authority.pair("basic-pd", ends=TODAY + timedelta(days=9)).secret(secret_name("pd")),
        CLIENT: authority.pair("client", ends=TODAY + timedelta(days=90)).secret(secret_name(CLIENT), ("tls.crt",)),
    }
    for secret in secrets.values():
        world.admin.create(SECRETS, secret, NAMESPACE)
    yield world
    world.stop()


@pytest.mark.rule("objects-9.1")
def test_lists_each_secret_with_its_expiry_or_its_problem(terminal: Terminal) -> None:
    lines = terminal.type("certs", "basic", code=1, width=100).splitlines()
    assert "basic-pd-cluster-secret      pd        2026-01-10T00:00:00Z  holds for 9d" in lines
    assert "basic-tikv-cluster-secret    tikv                            the Secret does not exist" in lines
    assert "basic-cluster-client-secret  clients                         it has no key ca.crt, tls.key" in lines


@pytest.mark.rule("objects-9.1")
def test_the_document_also_has_the_names_in_a_certificate(terminal: Terminal) -> None:
    document = terminal.document("certs", "basic", code=1)
    (pd,) = (each for each in document["certificates"] if each["usedBy"] == ["pd"])
    assert (["basic-pd"], "") == (pd["names"], pd["problem"])


def test_a_cluster_without_tls_uses_no_certificates(terminal: Terminal) -> None:
    assert terminal.type("certs", "plain").startswith("tidbcluster/plain uses no certificates")


def test_requires_a_cluster_or_a_file(terminal: Terminal) -> None:
    with pytest.raises(Failure, match="name a CLUSTER"):
        terminal.type("certs")
