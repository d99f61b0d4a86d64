import pytest

from informers.list_watch import ListWatch, Selectors
from informers.pager import list_pages
from kube.errors import Expired
from kube.resources import PODS
from tests.informers.fake_source import FakeSource, pod, refusal


@pytest.fixture
def source() -> FakeSource:
    source = FakeSource()
    for number in range(5):
        source.add(pod(f"p{number}"))
    return source


@pytest.mark.rule("LW-1")
def test_the_tweak_applies_to_lists_and_watches(source: FakeSource) -> None:
    tweaked = ListWatch(source.client(), PODS, "ns", Selectors("a=b"), tweak=lambda old: old.and_labels("c=d"))
    tweaked.list_page(resource_version="7")
    tweaked.watch(resource_version="7", timeout_seconds=300)
    assert ["a=b,c=d"] == source.params("LIST", "labelSelector") == source.params("WATCH", "labelSelector")
    watch = source.requests[-1]
    assert watch.path == "/api/v1/namespaces/ns/pods"
    assert {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "7",
        "timeoutSeconds": "300",
        "labelSelector": "a=b,c=d",
    } == watch.params


@pytest.mark.rule("LW-2")
def test_later_pages_carry_the_token_instead_of_the_version(source: FakeSource) -> None:
    listed = list_pages(ListWatch(source.client(), PODS), resource_version="12", limit=2)
    assert ["p0", "p1", "p2", "p3", "p4"] == [obj.metadata.name for obj in listed.items]
    assert (source.version, True) == (listed.resource_version, listed.paginated)
    assert ["12", "", ""] == source.params("LIST", "resourceVersion")
    assert ["", "2", "4"] == source.params("LIST", "continue")


@pytest.mark.rule("LW-2")
def test_the_version_is_the_first_pages(source: FakeSource) -> None:
    first = source.version
    source.before_list(lambda: source.modify(pod("p0")) if source.count("LIST") == 1 else None)
    assert first == list_pages(ListWatch(source.client(), PODS), resource_version="12", limit=3).resource_version


@pytest.mark.rule("LW-3")
def test_an_expired_token_leads_to_one_full_list(source: FakeSource) -> None:
    source.fail("LIST", None, refusal(410, "Expired"))
    listed = list_pages(ListWatch(source.client(), PODS), resource_version="12", limit=2)
    assert len(listed.items) == 5
    assert ["2", "2", ""] == source.params("LIST", "limit")
    assert ["12", "", "12"] == source.params("LIST", "resourceVersion")


@pytest.mark.rule("LW-3")
def test_a_full_list_that_is_paged_anyway_is_read_to_its_end(source: FakeSource) -> None:
    source.largest_page = 2
    source.fail("LIST", None, refusal(410, "Expired"))
    listed = list_pages(ListWatch(source.client(), PODS), resource_version="12", limit=500)
    assert ["p0", "p1", "p2", "p3", "p4"] == [obj.metadata.name for obj in listed.items]
    assert ["500", "500", "", "", ""] == source.params("LIST", "limit")


@pytest.mark.rule("LW-3")
def test_a_token_that_expires_in_a_full_list_is_the_callers(source: FakeSource) -> None:
    source.largest_page = 2
    source.fail("LIST", None, refusal(410, "Expired"), None, refusal(410, "Expired"))
    with pytest.raises(Expired):
        list_pages(ListWatch(source.client(), PODS), resource_version="12", limit=500)
    assert 4 == source.count("LIST")


@pytest.mark.rule("LW-3")
def test_the_caller_gets_gone_errors_and_an_expired_first_page(source: FakeSource) -> None:
    pages = ListWatch(source.client(), PODS)
    source.fail("LIST", None, refusal(410, "Gone"))
    with pytest.raises(Expired):
        list_pages(pages, resource_version="12", limit=2)
    source.fail("LIST", refusal(410, "Expired"))
    with pytest.raises(Expired):
        list_pages(pages, resource_version="12", limit=2)
    assert source.count("LIST") == 3


@pytest.mark.rule("LW-4")
def test_a_limit_of_zero_requests_everything_at_once(source: FakeSource) -> None:
    listed = list_pages(ListWatch(source.client(), PODS), resource_version="12", limit=0)
    assert (5, False) == (len(listed.items), listed.paginated)
    assert [""] == source.params("LIST", "limit")
