"""Faults of the server, and the audit of requests."""

import threading

import pytest

from ports.clock import FakeClock
from ports.transport import ConnectionLost, Request
from sandbox.apiserver import ApiServer, Fault, InProcessTransport, Refusal
from sandbox.apiserver.audit import Call
from tests.sandbox.apiserver.calls import CORE, Calls, config_map


def test_audit_counts_by_identity(server: ApiServer) -> None:
    operator, other = Calls(server, "operator"), Calls(server, "other")
    operator.made(f"{CORE}/configmaps", config_map("a"))
    operator("POST", f"{CORE}/configmaps", config_map("a"))
    operator("GET", f"{CORE}/configmaps/a")
    other("DELETE", f"{CORE}/configmaps/a")
    audit = server.audit
    assert (2, 1, 3) == (audit.writes("operator"), audit.writes("other"), audit.writes())
    assert 1 == audit.count(user="operator", verb="create", resource="configmaps", namespace="default", code=409)
    last = audit.recent()[-1]
    assert ("delete", "a", 200) == (last.call.verb, last.call.name, last.code)
    audit.clear()
    assert (0, []) == (audit.count(), audit.recent())


def test_a_fault_refuses(server: ApiServer) -> None:
    busy = Refusal(429, "TooManyRequests", "slow down", {"retryAfterSeconds": 3})
    server.faults = lambda call: Fault(refusal=busy) if call.verb == "list" and call.resource == "pods" else None
    call = Calls(server)
    refused = call("GET", "/api/v1/pods")
    assert (429, "3", "TooManyRequests") == (refused.code, refused.headers["retry-after"], refused.tree["reason"])
    assert 200 == call("GET", f"{CORE}/configmaps").code


@pytest.mark.parametrize(("fault", "done"), [(Fault(lose_request=True), False), (Fault(lose_answer=True), True)])
def test_a_fault_loses_the_connection_before_or_after_the_write(server: ApiServer, fault: Fault, done: bool) -> None:
    def strike(call: Call) -> Fault | None:
        return fault if call.is_write else None

    server.faults = strike
    transport = InProcessTransport(server)
    with pytest.raises(ConnectionLost):
        transport.request(Request("POST", f"{CORE}/configmaps", {}, b'{"metadata":{"name":"a"}}'))
    assert done == (transport.request(Request("GET", f"{CORE}/configmaps/a")).status == 200)
    assert 1 == server.audit.count(verb="create", code=0)


def test_a_fault_delays_on_the_clock(server: ApiServer, clock: FakeClock) -> None:
    server.faults = lambda _: Fault(delay=5)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(Calls(server)("GET", f"{CORE}/pods").code))
    thread.start()
    clock.wait_for_waiters()
    assert [] == codes
    clock.step(5)
    thread.join(5)
    assert [200] == codes
