"""The page about all clusters."""

import msgspec

from kube.client import Client
from kube.objects import Json
from ports.transport import Request, Response, Transport, TransportError
from tests.cli.tidb.objects import LONG_AGO, cluster, condition, dm_cluster
from tests.cli.tidb.typing_commands import Listing, ReadOnly, Refusing
from tests.cli.tidb.ui.pages import Page, open_page
from tests.operator_world import OperatorWorld


def clusters(*found: Json, dm: list[Json] | None = None) -> Listing:
    return Listing(tidbclusters=("TidbCluster", list(found)), dmclusters=("DMCluster", dm or []))


def one_cluster(name: str = "shop", *conditions: Json) -> Json:
    return cluster(name, status={"conditions": list(conditions)}).object.decode()


def _overview(transport: Transport, namespace: str = "") -> Page:
    with open_page(Client(transport), namespace) as browser:
        return browser.page()


def test_shows_a_running_cluster_and_writes_nothing(running: OperatorWorld) -> None:
    reader = ReadOnly(running.world.transport())
    page = _overview(reader)
    assert "1 cluster: 1 Ready, 0 not Ready." in page.text
    assert "basic TidbCluster in default · v8.5.2 Ready for" in page.text
    assert "tikv 1/1" in page.text
    assert {"tidbclusters", "dmclusters"} == reader.read


def test_shows_what_a_cluster_waits_for_and_since_when() -> None:
    waits = condition("Progressing", "StoreNotUp", "TiKV store 4 is Down.", holds=False)
    page = _overview(
        clusters(one_cluster("shop", condition("Ready", "TiKVStoreNotUp", "A store is down.", holds=False), waits))
    )
    assert "0 Ready, 1 not Ready, 1 needs you." in page.text
    assert "not Ready: TiKVStoreNotUp" in page.text
    assert "A store is down." in page.text
    assert "cluster: StoreNotUp for 0s It needs you. TiKV store 4 is Down." in page.text
    assert LONG_AGO in {each.attributes["datetime"] for each in page.every("time")}


def test_shows_those_first_that_need_attention() -> None:
    needs_user = condition("Progressing", "Refused", "No.", holds=False)
    ready = condition("Ready", "Ready", "Serves.")
    found = _overview(
        clusters(one_cluster("a", ready), one_cluster("b"), one_cluster("c", ready, needs_user), dm=[_dm()])
    )
    assert ["c", "b", "sync", "a"] == [each.text for each in found.every("h2")]


def _dm() -> Json:
    return dm_cluster({}).object.decode()


def test_names_clusters_that_cannot_be_decoded_beside_the_others() -> None:
    broken = one_cluster("broken") | {"spec": {"tikv": "three"}}
    page = _overview(clusters(broken, one_cluster()))
    assert ["shop", "Not shown"] == [each.text for each in page.every("h2")]
    assert "TidbCluster default/broken: TidbCluster default/broken cannot be read" in page.text


class _OneNamespace(Refusing):
    """A user who may list clusters in `default` alone."""

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        may = "/namespaces/default/" in request.url or "/dmclusters" in request.url
        return self._transport.request(request) if may else super().request(request)


def test_a_user_of_one_namespace_sees_its_clusters() -> None:
    page = _overview(_OneNamespace(clusters(one_cluster()), "tidbclusters"))
    assert ["shop", "Not shown"] == [each.text for each in page.every("h2")]
    assert "tidbclusters of all namespaces: you may not list them" in page.text


def test_a_user_without_rights_reads_why_nothing_is_shown() -> None:
    page = _overview(Refusing(clusters(), "tidbclusters", "dmclusters"))
    assert "There is no cluster that you may read." in page.text
    assert "dmclusters of namespace default: you may not list them" in page.text


def test_a_named_namespace_is_the_only_one(running: OperatorWorld) -> None:
    assert "There is no cluster that you may read." in _overview(running.world.transport(), "elsewhere").text
    assert "1 cluster:" in _overview(running.world.transport(), "default").text


class _Broken(Listing):
    """A server whose etcd is away."""

    def request(self, request: Request) -> Response:
        """See `Transport`."""
        return Response(500, {}, msgspec.json.encode({"kind": "Status", "message": "<b>etcd</b> is away"}))


def test_says_why_the_server_refuses() -> None:
    with open_page(Client(_Broken())) as browser:
        page = browser.page(status=502)
    assert "The API server refuses: <b>etcd</b> is away" in page.text


class _Unreachable(Listing):
    def request(self, request: Request) -> Response:
        """See `Transport`."""
        raise TransportError(request.method, request.url, "connection refused")


def test_says_that_the_server_cannot_be_reached() -> None:
    with open_page(Client(_Unreachable())) as browser:
        assert "connection refused" in browser.page(status=502).text


def test_an_address_without_a_page_leads_to_all_clusters() -> None:
    with open_page(Client(clusters())) as browser:
        page = browser.page("/nowhere", status=404)
    assert ["Not Found"] == [each.text for each in page.every("h1")]


HOSTILE = "</title><script src=//evil.example></script>\"'><img src=x onerror=alert(1)>{{7*7}}\u202e"


def test_shows_hostile_texts_as_text() -> None:
    conditions = (condition("Ready", HOSTILE, HOSTILE, holds=False), condition("Progressing", HOSTILE, HOSTILE))
    one = one_cluster("shop", *({**each, "lastTransitionTime": HOSTILE} for each in conditions))
    one["metadata"] |= {"name": HOSTILE, "namespace": HOSTILE, "labels": {"x": HOSTILE}}
    one["spec"]["version"] = HOSTILE
    page = _overview(clusters(one))
    assert ["/static/page.js"] == [each.attributes["src"] for each in page.every("script")]
    assert {"/static/icon.svg"} == {each.attributes["src"] for each in page.every("img")}
    assert page.text.count("<script src=//evil.example></script>\"'><img src=x onerror=alert(1)>{{7*7}}") > 5
    assert not {each for element in page.elements for each in element.attributes if each.startswith("on")}
    assert page.text.isprintable()
