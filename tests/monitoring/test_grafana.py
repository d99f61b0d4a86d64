"""Dashboards and provisioning files are what Grafana's schemas say (other-resources.md 3.6)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

import manifests
from apis.decoding import decode
from apis.monitors import OPERATOR_NAMESPACE, TidbMonitor, with_monitor_defaults
from member.monitor.grafana import provisioning
from tests.controllers.tidbmonitor.monitors import monitor

DASHBOARD = Path(str(manifests.DIRECTORY)) / "monitoring" / "dashboard.json"


class _Provider(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The directory in which Grafana finds dashboards, by its documentation of provisioning."""

    name: str
    type: Literal["file"]
    options: dict[str, str | bool]
    org_id: int = 1
    folder: str = ""
    folder_uid: str = ""
    disable_deletion: bool = False
    update_interval_seconds: int = 10
    allow_ui_updates: bool = False


class _Provisioning(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    api_version: Literal[1]
    providers: list[_Provider]


def unknown(given: Any, understood: Any, path: str = "") -> Iterator[str]:
    """The parts of a tree that Grafana's own types drop, or change."""
    match given, understood:
        case dict(), dict():
            for key, value in given.items():
                yield from unknown(value, understood.get(key), f"{path}/{key}")
        case list(), list():
            for at, value in enumerate(given):
                yield from unknown(value, understood[at] if at < len(understood) else None, f"{path}/{at}")
        case _ if given != understood:
            yield path


def not_in_the_schema(dashboard: Any) -> list[str]:
    register_default_plugins()
    understood = json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))
    return list(unknown(dashboard, understood))


def test_the_dashboard_of_the_operator_is_what_grafana_understands() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert [] == not_in_the_schema(dashboard)
    assert len(dashboard["panels"]) == len({each["id"] for each in dashboard["panels"]})


@pytest.mark.parametrize(("at", "field"), [("", "descriptoin"), ("panels", "gridpos"), ("targets", "exprs")])
def test_a_field_that_grafana_does_not_know_is_found(at: str, field: str) -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    panel = next(each for each in dashboard["panels"] if each.get("targets"))
    place = {"": dashboard, "panels": panel, "targets": panel["targets"][0]}[at]
    place[field] = {}
    (found,) = not_in_the_schema(dashboard)
    assert found.endswith(f"/{field}")


@pytest.mark.parametrize("annotations", [{}, {OPERATOR_NAMESPACE: "tidb-admin"}], ids=["clusters", "operator"])
@pytest.mark.rule("other-resources-3.6")
def test_dashboards_are_provisioned_as_grafana_documents_it(annotations: dict[str, str]) -> None:
    made = with_monitor_defaults(decode(monitor(annotations=annotations), TidbMonitor))
    (text,) = provisioning(made)["data"].values()
    providers = msgspec.json.decode(text, type=_Provisioning).providers
    assert len(providers) == 1 + len(annotations) == len({each.name for each in providers})
    assert all(Path(str(each.options["path"])).is_absolute() for each in providers)
