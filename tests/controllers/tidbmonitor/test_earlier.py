"""The references of a v1.6 monitor into other namespaces are read from v1.6's objects."""

import json

import pytest

from controllers.tidbmonitor.earlier import Earlier
from tests.apis.field_trees import shared_file


def test_clusters_are_recognised_by_their_jobs() -> None:
    recorded = json.loads(shared_file("golden", "dev-monitor.json").read_text(encoding="utf-8"))["items"]
    made = next(each for each in recorded if "prometheus.yml" in (each.get("data") or {}))
    text = made["data"]["prometheus.yml"].replace("regex: monb\n", "regex: old\\.monb\n")
    earlier = Earlier(text, {}, frozenset())
    namespace = made["metadata"]["namespace"]
    names = ("mona", "monb", "mon", "mona-tikv", "somebody-else")
    found = {name: earlier.target("TidbCluster", namespace, name) for name in names}
    assert {"mona": "mona", "monb": "old.monb"} == {name: each.instance for name, each in found.items() if each}


def test_a_long_configuration_is_read_once() -> None:
    """Its user may edit it, and name as many clusters."""
    earlier = Earlier("- job_name: b-vault-pd\n" * 45_000 + "  regex: vault\n", {}, frozenset())
    assert not any(earlier.target("TidbCluster", "b", f"other-{number}") for number in range(5_000))
    found = earlier.target("TidbCluster", "b", "vault")
    assert found is not None
    assert "vault" == found.instance


@pytest.mark.rule("MON-1")
def test_a_cluster_keeps_the_jobs_of_its_full_text_search() -> None:
    jobs = [f"- job_name: b-{name}\n  regex: vault\n" for name in ("vault-pd", "vault-tici-worker", "other-pd")]
    earlier = Earlier("".join(jobs), {}, frozenset())
    found = [earlier.target("TidbCluster", "b", name) for name in ("vault", "other")]
    assert [{"tici-worker"}, set()] == [set(each.beyond_v16) for each in found if each]
