"""Options with which Prometheus would not start, or would not become Ready, are refused with the way out (3.6)."""

from typing import Any

import pytest

from apis.validation.monitors import validate_monitor
from tests.apis.test_monitor_validation import monitor, prometheus

FIELD = "spec.prometheus.config.commandOptions"
THANOS = {"baseImage": "example/thanos", "version": "v0.30.0"}


def problems(*options: str, prometheus_too: Any = None, **more: Any) -> list[str]:
    """The problems of a monitor with these options."""
    own = prometheus(config={"commandOptions": list(options)}, **(prometheus_too or {}))
    return [str(each) for each in validate_monitor(monitor(**own, **more))]


@pytest.mark.parametrize(
    ("option", "way_out"),
    [
        ("--storage.tsdb.retention.time=3d", "set spec.prometheus.retentionTime"),
        ("--config.file=/mine.yml", "set spec.prometheus.config.configMapRef"),
        ("--no-web.enable-lifecycle", "remove it"),
        ("--query.timeout=2m --web.enable-admin-api", "remove it"),
        ("--agent", "remove it"),
        ("--version", "remove it"),
    ],
)
def test_refuses_an_option_with_which_prometheus_would_not_start(option: str, way_out: str) -> None:
    (problem,) = problems(option)
    assert problem.startswith(f'{FIELD}[0]: "{option}": ')
    assert problem.endswith(way_out)


@pytest.mark.parametrize(
    "options",
    [("--query.timeout=1m", "--query.timeout=2m"), ("--query.timeout 1m --query.timeout", "2m")],
)
def test_refuses_an_option_that_the_user_gives_twice(options: tuple[str, ...]) -> None:
    (problem,) = problems(*options)
    assert "sets --query.timeout again" in problem


def test_refuses_an_option_that_another_field_sets_as_well() -> None:
    assert [] == problems("--log.level=warn", "--storage.tsdb.min-block-duration=1h")
    assert "or spec.prometheus.logLevel" in problems("--log.level=warn", prometheus_too={"logLevel": "info"})[0]
    for beside in ({"prometheus_too": {"disableCompaction": True}}, {"thanos": THANOS}):
        (problem,) = problems("--storage.tsdb.min-block-duration=1h", **beside)
        assert "as the operator does" in problem


@pytest.mark.parametrize(
    "option",
    [
        "--web.listen-address=:9091",
        "--web.listen-address=127.0.0.1:9090",
        "--web.listen-address=:9091 --web.listen-address=localhost:9090",
        "--web.route-prefix=/prometheus",
        "--web.external-url=https://example.com/prometheus --web.route-prefix=",
        "--web.external-url=https://example.com/prometheus",
    ],
)
def test_refuses_a_place_where_the_readiness_probe_does_not_ask(option: str) -> None:
    (problem,) = problems(option)
    assert "readiness probe" in problem


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--web.listen-address=0.0.0.0:9090",),
        ("--web.listen-address=[::]:9090",),
        ("--web.listen-address=:9090", "--web.listen-address=:9091"),
        ("--web.listen-address=:$(PORT)",),
        ("--no-agent",),
        ("--storage.tsdb.retention=3d",),
        ("--web.external-url=https://example.com/prometheus", "--web.route-prefix=/"),
        ("--web.external-url=https://example.com",),
        ("--enable-feature=a", "--enable-feature=b"),
        ("--log.format json --query.max-samples=1000",),
        ("--an-option-of-a-newer-version=1",),
    ],
)
def test_accepts_other_options(options: tuple[str, ...]) -> None:
    assert [] == problems(*options)


@pytest.mark.parametrize(
    ("container", "options"),
    [
        ({"command": ["/bin/prometheus"]}, ("--config.file=/mine.yml", "--web.route-prefix=/prometheus")),
        ({"readinessProbe": {"httpGet": {"path": "/prometheus/-/ready"}}}, ("--web.route-prefix=/prometheus",)),
    ],
)
def test_accepts_options_for_which_a_container_of_the_user_provides(container: Any, options: tuple[str, ...]) -> None:
    """A command replaces the options; a readiness probe asks elsewhere."""
    assert [] == problems(*options, additionalContainers=[{"name": "prometheus", **container}])
