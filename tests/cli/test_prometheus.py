"""The files of `make run` for a Prometheus on this machine."""

from pathlib import Path

import yaml

from cli.sandbox import write_configuration
from kube.resources import CONFIG_MAPS
from member.monitor.objects import prometheus_config
from tests.apis.test_monitor_validation import monitor
from tests.kube.fakes import FakeApi
from tests.member.reconciling import context
from tests.member.test_monitor import INPUTS


def test_the_written_configuration_reaches_the_api_server_and_pods_from_outside(tmp_path: Path) -> None:
    api = FakeApi()
    client = context(api).deps.client
    assert write_configuration(client, ("ns", "basic"), tmp_path, "http://127.0.0.1:1") is None
    api.put(CONFIG_MAPS.path("ns", "basic-monitor"), prometheus_config(monitor(enableAlertRules=True), INPUTS))
    path = write_configuration(client, ("ns", "basic"), tmp_path, "http://127.0.0.1:1")
    assert path == tmp_path / "prometheus.yml"
    text = path.read_text()
    tree = yaml.safe_load(text)
    assert "$(" not in text
    assert "rule_files" not in tree
    for job in tree["scrape_configs"]:
        (discovery,) = job["kubernetes_sd_configs"]
        assert "http://127.0.0.1:1" == job["proxy_url"]
        assert {"role", "namespaces", "kubeconfig_file"} == discovery.keys()
