"""The judge's facts from the table of components; a wrong fact there would deceive operator and judge alike."""

import math
from dataclasses import replace

import pytest

from apis.components import component_type, with_component
from member.components import with_workload, workload, workload_names
from member.context import FailoverSettings
from simulate.engine.components import managed_components, profile


@pytest.mark.rule("7.2")
def test_components_are_upgraded_in_their_order() -> None:
    order = ["pd", "tiflash", "tikv", "pump", "tidb", "ticdc", "tici-meta", "tici-worker"]
    for place, name in enumerate(order[1:], 1):
        assert set(order[:place]) >= set(component_type(name).upgrades_after)
        assert order[0] in component_type(name).upgrades_after
    assert ("pd", "tiflash", "tikv") == component_type("tidb").upgrades_after[:3]
    assert "tikv" not in component_type("tiflash").upgrades_after


@pytest.mark.rule("12")
def test_clients_are_suspended_before_their_servers() -> None:
    order = ["tidb", "tiflash", "ticdc", "tici-meta", "tici-worker", "tikv", "pump"]
    order += ["tiproxy", "pd", "tso", "scheduling"]
    assert order == sorted(order, key=lambda name: component_type(name).suspend_rank)


@pytest.mark.rule("3.1")
def test_tikv_starts_after_pd_and_tidb_after_tikv() -> None:
    assert "pd" in component_type("tikv").starts_after
    assert "tikv" in component_type("tidb").starts_after


def test_a_component_that_a_test_registers_is_judged() -> None:
    greeter = replace(component_type("tidb"), name="greeter")
    with with_component(greeter), with_workload(replace(workload("tidb"), name="greeter")):
        assert (*workload_names(),) == managed_components()
        assert "greeter" in managed_components()
    assert "greeter" not in managed_components()


def test_a_component_without_failover_has_an_infinite_failover_period() -> None:
    assert math.inf == profile("greeter").failover_period(FailoverSettings())
    assert 300.0 == profile("tikv").failover_period(FailoverSettings())
