"""ConfigMap and Job of a TidbInitializer match a live v1.6's, by field (other-resources.md 2.3)."""

import json
import re

import pytest

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.initializers import TidbInitializer
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.initializer import desired
from tests.member.recordings import GOLDEN, differences

ADDED = re.compile(
    r"/spec/(completionMode|completions|manualSelector|parallelism|podReplacementPolicy|suspend)"
    r"|/spec/selector/.*|/(metadata|spec/template/metadata)/labels/(batch.kubernetes.io/)?(controller-uid|job-name)"
    r"|/spec/template/spec/dnsPolicy|.*/terminationMessagePath|.*/terminationMessagePolicy|.*/imagePullPolicy"
    r"|/spec/template/spec/volumes/[^/]+/secret/defaultMode"
    r"|/metadata/(namespace|ownerReferences/.*)|/(apiVersion|kind)"
)
"""Additions of Kubernetes to a Job, and of `Reconcile.apply`."""
OURS = re.compile(
    r"/spec/template/metadata/annotations/kubectl.kubernetes.io/last-applied-configuration"  # left out
    r"|/data/(init-)?start-script"  # our own scripts
)
"""Intended differences (docs/compat.md)."""


def recorded(name: str) -> dict[str, Json]:
    """The objects of a recording, by kind and name."""
    path = GOLDEN / f"{name}.json"
    if not path.exists():
        pytest.skip("the recordings of v1.6 are not beside the repository")
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in json.loads(path.read_text())["items"]}


@pytest.mark.parametrize(("name", "count"), [("dev-init", 2), ("dev-tls", 1)])
@pytest.mark.rule("other-resources-2.3")
def test_config_map_and_job_equal_v1_6(name: str, count: int) -> None:
    items = recorded(name)
    found = [decode(item, TidbInitializer) for item in items.values() if item["kind"] == "TidbInitializer"]
    assert count == len(found)
    for each in found:
        tc = with_defaults(decode(items[f"TidbCluster/{each.spec.cluster.name}"], TidbCluster))
        made = {"Job": desired.job(each, tc), "ConfigMap": desired.config_map(each, tc, run=None)}
        for kind, ours in made.items():
            lines = differences(items[f"{kind}/{desired.object_name(each)}"], ours)
            paths = ((line, line.partition(": ")[0]) for line in lines)
            assert [] == [line for line, path in paths if not ADDED.fullmatch(path) and not OURS.fullmatch(path)]


@pytest.mark.rule("other-resources-2.3")
def test_the_containers_find_their_files_and_variables() -> None:
    tree: Json = {"image": "i", "cluster": {"name": "basic"}, "passwordSecret": "pw", "initSql": "SELECT 1;"}
    initializer = decode({"metadata": {"name": "demo"}, "spec": tree}, TidbInitializer)
    cluster = {"version": "v8.5.2", "tidb": {"replicas": 1, "service": {"port": 4444}, "tlsClient": {"enabled": True}}}
    tc = with_defaults(decode({"metadata": {"name": "basic"}, "spec": cluster}, TidbCluster))
    data = desired.config_map(initializer, tc, run=None)["data"]
    assert "HOST=basic-tidb\nPORT=4444\n" in data["init-start-script"]
    given = (
        "Settings(host='basic-tidb', port=4444, permit_host='%', tls='/var/lib/tidb-client-tls', verifies=True, "
        "passwords='/etc/tidb/password', sql='/data/init.sql', log='/dev/termination-log')"
    )
    assert f"sys.exit(main({given}))" in data["start-script"]
    assert ["basic-tidb-client-secret", "pw"] == desired.secret_names(initializer, tc)
    tree = {"metadata": {"name": "basic"}, "spec": {"version": "v8.5.2", "tidb": {"replicas": 1}}}
    tc = with_defaults(decode(tree, TidbCluster))
    assert (
        "HOST=basic-tidb-peer\nPORT=4000\n"
        in desired.config_map(initializer, tc, run=None)["data"]["init-start-script"]
    )
