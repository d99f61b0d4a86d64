"""Root's first password from another process, over MySQL's protocol, with TLS and without (objects.md 4.5, 9)."""

from pathlib import Path

import pytest

from cli import certs
from cli.manifests import Manifest
from kube.resources import SECRETS, TIDB_CLUSTERS
from tests.e2e import operators
from tests.e2e.marks import IN_ONE_WORLD
from tests.e2e.waiting import eventually
from tests.e2e.worlds import Place, conditions, create_cluster, sample

pytestmark = pytest.mark.slow


@IN_ONE_WORLD
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
@pytest.mark.rule("objects-4.5")
def test_root_gets_a_password(place: Place, namespace: str, tmp_path: Path, tls: bool) -> None:
    client, tree = place.client, sample("basic")
    tree["metadata"]["namespace"] = namespace
    tree["spec"]["tidb"] |= {"initializer": {"createPassword": True}, "tlsClient": {"enabled": tls}}
    for secret in certs.secrets([Manifest("basic", tree)], tmp_path / "ca"):
        client.create(SECRETS, secret, namespace)

    def is_done() -> bool:
        status = client.get(TIDB_CLUSTERS, "basic", namespace).decode().get("status") or {}
        return bool((status.get("tidb") or {}).get("passwordInitialized"))

    with operators.running(place.new_log(), place.environment()):
        create_cluster(client, tree, namespace)
        eventually(is_done, told=lambda: conditions(client, "basic", namespace))
    pd = place.data_plane.pd_cluster(namespace, "basic")
    assert pd is not None
    assert 13 == len(pd.users["root"])
