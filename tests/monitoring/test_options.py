"""Prometheus itself refuses the options that the operator refuses, beside the options that the operator passes."""

import re
import subprocess

import pytest

from apis.monitors import TidbMonitor
from apis.shared import Json
from apis.validation.monitors import validate_monitor
from member.monitor.containers import prometheus as container
from tests.apis.test_monitor_validation import monitor, prometheus
from tests.monitoring.conftest import built


def complaint(spec: TidbMonitor) -> str:
    """The answer of a Prometheus with the options of a monitor; the configuration file is missing on purpose."""
    script = container(spec, 0)["command"][-1]
    *_, words = script.strip().rpartition("/bin/prometheus ")
    done = subprocess.run(
        [built("prometheus"), *words.split()], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "more"),
    [
        ("--storage.tsdb.retention.time=3d", {}),
        ("--config.file=/mine.yml", {}),
        ("--no-web.enable-lifecycle", {}),
        ("--log.level=warn", {"logLevel": "info"}),
        ("--storage.tsdb.max-block-duration=2h", {"disableCompaction": True}),
        ("--agent", {}),
    ],
)
def test_prometheus_refuses_what_the_operator_refuses(option: str, more: Json) -> None:
    spec = monitor(**prometheus(config={"commandOptions": [option]}, **more))
    assert validate_monitor(spec)
    assert any(each in complaint(spec) for each in ("cannot be repeated", "can not be used in agent mode"))


@pytest.mark.slow
def test_refuses_no_option_that_prometheus_takes() -> None:
    """Each option of this Prometheus, with a value that its help shows."""
    text = subprocess.run([built("prometheus"), "--help-long"], capture_output=True, text=True, check=False).stdout
    options = [_sample(each) for each in re.findall(r"^ +(?:-\w, )?(--[^ ]+)", text, re.MULTILINE)]
    wrong = []
    for option in options:
        spec = monitor(**prometheus(config={"commandOptions": [option]}))
        if validate_monitor(spec) and "Error loading config" in complaint(spec):
            wrong.append(option)
    assert len(options) > 50
    assert [] == wrong


def _sample(shown: str) -> str:
    """An option as `--help-long` shows it, e.g. `--[no-]web.enable-lifecycle` or `--log.level=info`, with a value."""
    name, has_value, value = shown.removesuffix("...").replace("[no-]", "").partition("=")
    value = {"<URL>": "http://example.com", "<path>": "/"}.get(value, value.strip('"').rstrip("."))
    return name + has_value + ("1h" if value.startswith("<") or value.isupper() else value)


@pytest.mark.slow
@pytest.mark.parametrize("option", ["", "--log.level=warn", "--web.listen-address=0.0.0.0:9090 --query.timeout 1m"])
def test_prometheus_takes_what_the_operator_accepts(option: str) -> None:
    spec = monitor(**prometheus(config={"commandOptions": [option]}))
    assert [] == validate_monitor(spec)
    assert "Error loading config" in complaint(spec)
