"""Faults of the server and of the connection, and their effect on the cache and its handlers (TEST-7)."""

import pytest

from kube.resources import CONFIG_MAPS
from tests.e2e.waiting import CLOCK, eventually
from tests.informer_contract.following import config_map, following, starting
from tests.informer_contract.servers import Server


def change(server: Server, namespace: str, name: str, value: int) -> None:
    server.admin.patch(CONFIG_MAPS, name, namespace, {"data": {"value": str(value)}})


def create(server: Server, namespace: str, name: str, value: int = 1) -> None:
    server.admin.create(CONFIG_MAPS, config_map(name, value), namespace)


def delete(server: Server, namespace: str, name: str) -> None:
    server.admin.delete(CONFIG_MAPS, name, namespace)


@pytest.mark.rule("INF-11", "REF-22")
def test_a_handler_gets_the_existing_objects_and_all_changes(server: Server, namespace: str) -> None:
    create(server, namespace, "a")
    with following(server, namespace) as follower:
        create(server, namespace, "b")
        change(server, namespace, "a", 2)
        delete(server, namespace, "b")

        follower.heard.await_told("add a=1", "add b=1", "update a=2", "delete b")
        assert {"a=2"} == follower.shown()


@pytest.mark.rule("REF-30")
def test_a_connection_reset_costs_no_list_and_no_event(server: Server, namespace: str) -> None:
    create(server, namespace, "a")
    with following(server, namespace) as follower:
        follower.heard.await_told("add a=1")
        change(server, namespace, "a", 2)
        follower.heard.await_told("add a=1", "update a=2")
        follower.relay.cut()
        change(server, namespace, "a", 3)

        follower.heard.await_told("add a=1", "update a=2", "update a=3")
        assert 1 == follower.traffic.count("list")


@pytest.mark.slow
@pytest.mark.rule("TH-13", "R12")
def test_a_half_open_connection_is_noticed_and_costs_no_list(server: Server, namespace: str) -> None:
    create(server, namespace, "a")
    with following(server, namespace, silence=1.5) as follower:
        change(server, namespace, "a", 2)
        follower.heard.await_told("add a=1", "update a=2")
        before = follower.last_event
        follower.relay.freeze()
        frozen = CLOCK.now()
        change(server, namespace, "a", 3)
        change(server, namespace, "a", 4)
        assert before == follower.last_event

        follower.heard.await_told("add a=1", "update a=2", "update a=3", "update a=4")
        assert 1 < CLOCK.now() - frozen
        assert (1, True) == (follower.traffic.count("list"), before < follower.last_event)


@pytest.mark.slow
@pytest.mark.rule("REF-21")
def test_a_server_that_is_away_for_a_while_costs_no_list(server: Server, namespace: str) -> None:
    create(server, namespace, "a")
    with following(server, namespace) as follower:
        change(server, namespace, "a", 2)
        follower.heard.await_told("add a=1", "update a=2")
        with follower.relay.away():
            change(server, namespace, "a", 3)
            delete(server, namespace, "a")

        follower.heard.await_told("add a=1", "update a=2", "update a=3", "delete a")
        assert 1 == follower.traffic.count("list")


@pytest.mark.slow
@pytest.mark.rule("REF-27", "INF-23")
def test_what_an_expired_history_hides_is_found_by_a_list(server: Server, namespace: str) -> None:
    create(server, namespace, "same")
    with following(server, namespace) as follower:
        create(server, namespace, "gone")
        create(server, namespace, "changed")
        before = ("add same=1", "add gone=1", "add changed=1")
        follower.heard.await_told(*before)
        with follower.relay.away():
            delete(server, namespace, "gone")
            change(server, namespace, "changed", 2)
            create(server, namespace, "new")
            server.restart()

        # FIFO-22: deletions first, then the list in its order
        follower.heard.await_told(*before, "lost gone", "update changed=2", "add new=1")
        assert {"changed=2", "new=1", "same=1"} == follower.shown()
        assert 1 == follower.watches_ended("expired")


@pytest.mark.slow
@pytest.mark.rule("TEST-7")
def test_a_server_restart_loses_and_repeats_no_notification(server: Server, namespace: str) -> None:
    create(server, namespace, "a")
    with following(server, namespace) as follower:
        change(server, namespace, "a", 2)
        follower.heard.await_told("add a=1", "update a=2")
        server.restart()
        create(server, namespace, "b")

        follower.heard.await_told("add a=1", "update a=2", "add b=1")
        assert {"a=2", "b=1"} == follower.shown()


@pytest.mark.slow
@pytest.mark.rule("REST-11")
def test_a_refused_token_is_read_again_from_its_file(server: Server, namespace: str) -> None:
    with following(server, namespace) as follower:
        server.replace_token()
        create(server, namespace, "a")

        follower.heard.await_told("add a=1")
        assert [401] == [each.status for each in follower.traffic.asked if each.status >= 400][:1]
        assert 200 == follower.traffic.asked[-1].status


@pytest.mark.slow
@pytest.mark.rule("REST-3")
def test_a_server_that_sheds_load_is_asked_again_after_its_retry_after(server: Server, namespace: str) -> None:
    create(server, namespace, "a")
    with server.shedding(), starting(server, namespace) as follower:
        eventually(lambda: follower.traffic.count("list", 429) >= 2)
        first, second = follower.traffic.asked[:2]
        assert second.at - first.at >= 1.0
        assert [] == follower.heard.told


@pytest.mark.slow
@pytest.mark.rule("REST-3")
def test_a_watch_that_was_shed_is_opened_in_the_end_and_costs_no_list(server: Server, namespace: str) -> None:
    create(server, namespace, "a")
    with following(server, namespace) as follower:
        change(server, namespace, "a", 2)
        follower.heard.await_told("add a=1", "update a=2")
        with server.shedding():
            follower.relay.cut()
            eventually(lambda: follower.traffic.count("watch", 429))
        change(server, namespace, "a", 3)

        follower.heard.await_told("add a=1", "update a=2", "update a=3")
        assert 1 == follower.traffic.count("list")
