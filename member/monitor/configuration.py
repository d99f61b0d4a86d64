"""`prometheus.yml` as the ConfigMap has it; each pod inserts its own name, namespace and shard (3.5)."""

from functools import lru_cache

import msgspec
import yaml

from apis.monitors import OPERATOR_NAMESPACE, TidbMonitor
from kube.objects import Json
from member.monitor.inputs import Inputs
from member.monitor.remote_write import remote_write
from member.monitor.scrape import scrape_configs

REPLICA = "$(NAMESPACE)_$(POD_NAME)"
"""The label value that distinguishes replicas whose series are stored together."""
RULES = "/prometheus-rules"
EXTERNAL_RULES = "/prometheus-external-rules"
OPERATOR_RULES = "/prometheus-operator-rules"
_INTERVAL = "15s"
_KEPT = 128
"""The number of cached texts, one per monitor."""


def prometheus_yml(monitor: TidbMonitor, inputs: Inputs) -> str:
    """The text of the file: the user's replacement, or the generated configuration."""
    if inputs.given_config is not None:
        return inputs.given_config
    return _yaml(msgspec.json.encode(configuration(monitor, inputs)))


@lru_cache(_KEPT)
def _yaml(tree: bytes) -> str:
    """A tree in JSON as YAML, which takes a tenth of a second to write; few reconciles change anything of it."""
    text: str = yaml.safe_dump(msgspec.json.decode(tree), sort_keys=False, default_flow_style=False, width=1000)
    return text


def configuration(monitor: TidbMonitor, inputs: Inputs) -> Json:
    """The generated configuration."""
    spec = monitor.spec
    operator = monitor.metadata.annotations.get(OPERATOR_NAMESPACE, "")
    tree: Json = {
        "global": {
            "evaluation_interval": _INTERVAL,
            "scrape_interval": _INTERVAL,
            "external_labels": _external_labels(monitor),
        },
        "scrape_configs": scrape_configs(inputs, spec.shards or 1, operator),
    }
    if spec.prometheus.remote_write:
        tree["remote_write"] = remote_write(monitor, inputs)
    if spec.alertmanager_url:
        tree["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [spec.alertmanager_url]}]}]}
    if rules := _rule_files(monitor):
        tree["rule_files"] = rules
    return tree


def _external_labels(monitor: TidbMonitor) -> Json:
    name = monitor.spec.replica_external_label_name
    replica = {} if name == "" else {name or "prometheus_replica": REPLICA}
    return dict(sorted({**replica, **monitor.spec.external_labels}.items()))


def _rule_files(monitor: TidbMonitor) -> list[str]:
    spec = monitor.spec
    files = []
    if spec.prometheus.config is not None and spec.prometheus.config.rule_config_ref is not None:
        files.append(f"{EXTERNAL_RULES}/*.rules.yml")
    elif spec.alertmanager_url or spec.enable_alert_rules:
        files.append(f"{RULES}/rules/*.rules.yml")
    if OPERATOR_NAMESPACE in monitor.metadata.annotations:
        files.append(f"{OPERATOR_RULES}/*.rules.yml")
    return files
