"""The checks of `helm test`: healthy pods, one of which leads (scheduler-deployment.md 9)."""

from collections.abc import Mapping

import pytest

from controller_manager.check import Pods, check, main, resolve
from ports.clock import FakeClock
from ports.transport import ByteStream, ConnectionRefused, Request, Response

_HOST = "tidb-controller-manager.tidb-admin"
_LEADER = 'leader_election_master_status{name="tidb-controller-manager"} 1.0\n'
_STANDBY = 'leader_election_master_status{name="tidb-controller-manager"} 0.0\n'


class _Network:
    """Pods by address: what their metrics say, and pages that fail."""

    def __init__(self, metrics: Mapping[str, str], failing: Mapping[str, str] | None = None) -> None:
        self._metrics = metrics
        self._failing = failing or {}

    def request(self, request: Request) -> Response:
        address, _, page = request.url.removeprefix("http://").partition(":6060")
        if address not in self._metrics:
            raise ConnectionRefused("GET", request.url, "connection refused")
        if page == "/metrics":
            return Response(200, {}, self._metrics[address].encode())
        found = self._failing.get(page)
        return Response(503, {}, found.encode()) if found else Response(200, {}, b"ok\n")

    def stream(self, request: Request, idle_timeout: float) -> ByteStream:
        raise NotImplementedError


def _look(network: _Network, addresses: list[str], leases: int = 1) -> tuple[int, list[str]]:
    said: list[str] = []
    clock = FakeClock()
    pods = Pods(_HOST, 6060, lambda _: addresses, network)
    code = check(pods, leases=leases, within=3.0, clock=clock, pause=clock.step, say=said.append)
    return code, said


def test_one_of_two_leads() -> None:
    network = _Network({"10.0.0.1": _STANDBY, "[fd00::2]": _LEADER})
    assert (0, [f"{_HOST}:6060: healthy; Leases held: 1"]) == _look(network, ["10.0.0.1", "fd00::2"])


def test_two_share_the_leases_of_three_shards() -> None:
    names = [f'leader_election_master_status{{name="tidb-controller-manager{end}"}} ' for end in ("", "-1", "-2")]
    first = "".join(f"{name}{held}\n" for name, held in zip(names, (1, 0, 1), strict=True))
    second = "".join(f"{name}{held}\n" for name, held in zip(names, (0, 1, 0), strict=True))
    network = _Network({"10.0.0.1": first, "10.0.0.2": second})
    assert (0, [f"{_HOST}:6060: healthy; Leases held: 3"]) == _look(network, ["10.0.0.1", "10.0.0.2"], 3)


def test_an_observer_does_not_lead() -> None:
    assert (0, [f"{_HOST}:6060: healthy; Leases held: 0"]) == _look(_Network({"10.0.0.1": ""}), ["10.0.0.1"], 0)


@pytest.mark.parametrize(
    ("network", "addresses", "told"),
    [
        (_Network({}), [], f"{_HOST}: no address; is a pod of the controller-manager running?"),
        (
            _Network({"10.0.0.1": _STANDBY}),
            ["10.0.0.1"],
            f"{_HOST}: the pods hold 0 Leases, expected 1; their logs say why",
        ),
        (
            _Network({"10.0.0.1": _LEADER, "10.0.0.2": _LEADER}),
            ["10.0.0.1", "10.0.0.2"],
            f"{_HOST}: 2 pods say that they hold the Lease tidb-controller-manager",
        ),
        (
            _Network({"10.0.0.1": _LEADER}, {"/readyz": "[-] caches: pods are not read yet\nfailed\n"}),
            ["10.0.0.1"],
            "http://10.0.0.1:6060/readyz: 503: [-] caches: pods are not read yet\nfailed",
        ),
        (
            _Network({"10.0.0.1": _LEADER}),
            ["10.0.0.1", "10.0.0.9"],
            "GET http://10.0.0.9:6060/healthz: connection refused",
        ),
    ],
    ids=["none", "no-holder", "two-holders", "not-ready", "silent"],
)
def test_reports_what_is_wrong(network: _Network, addresses: list[str], told: str) -> None:
    assert (1, [told]) == _look(network, addresses)


def test_checks_again_until_all_is_well() -> None:
    """A pod that has just started leads a moment later."""
    clock = FakeClock()
    pods = Pods(_HOST, 6060, lambda _: ["10.0.0.1"] if clock.now() > 30.0 else [], _Network({"10.0.0.1": _LEADER}))
    assert 0 == check(pods, leases=1, within=60.0, clock=clock, pause=clock.step, say=lambda _: None)


def test_names_are_resolved_and_addresses_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert ["127.0.0.1"] == resolve("127.0.0.1")
    assert () == resolve("nobody.invalid")
    with pytest.raises(SystemExit):
        main(["tidb-admin"])
    assert "address" in capsys.readouterr().err
