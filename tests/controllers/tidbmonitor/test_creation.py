"""A monitor comes up, and costs nothing afterwards (other-resources.md 3.2, 3.3)."""

import pytest

from kube.resources import (
    CONFIG_MAPS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    TIDB_MONITORS,
)
from tests.controllers.tidbmonitor.monitors import Monitors, monitor


@pytest.mark.rule("other-resources-3.2")
def test_a_monitor_starts_at_the_same_time_as_its_cluster(beside_basic: Monitors) -> None:
    monitors = beside_basic
    monitors.create(monitor())
    monitors.run_until_ready()
    world = monitors.world
    assert ["tidb.pingcap.com/monitor-protection"] == world.get(TIDB_MONITORS, "basic")["metadata"]["finalizers"]
    assert 1 == monitors.status()["statefulSet"]["readyReplicas"]
    for resource, name in (
        (STATEFUL_SETS, "basic-monitor"),
        (CONFIG_MAPS, "basic-monitor"),
        (CONFIG_MAPS, "basic-monitor-grafana"),
        (SECRETS, "basic-monitor"),
        (SECRETS, "tidbmonitor-basic-tls-assets"),
        (SERVICES, "basic-prometheus"),
        (SERVICES, "basic-monitor-reloader"),
        (SERVICES, "basic-grafana"),
        (SERVICES, "basic-monitor"),
        (SERVICE_ACCOUNTS, "basic-monitor"),
        (ROLES, "basic-monitor"),
        (ROLE_BINDINGS, "basic-monitor"),
        (PODS, "basic-monitor-0"),
    ):
        assert world.exists(resource, name), name
    assert world.is_ready()
    assert "Done" == world.reason()


@pytest.mark.rule("I29")
def test_five_resyncs_write_and_read_nothing(monitors: Monitors) -> None:
    monitors.create(monitor())
    monitors.run_until_ready()
    monitors.world.run(60.0)
    monitors.world.forget()
    for _ in range(5):
        monitors.world.run(30.0)
        monitors.resync()
    assert [] == monitors.world.writes()
    assert [] == monitors.world.reads()
