"""The ConfigMaps and the Secret that Prometheus mounts (other-resources.md 3.3, 3.5)."""

from apis.monitors import TidbMonitor
from kube.objects import Json
from member.monitor.configuration import prometheus_yml
from member.monitor.inputs import Inputs
from member.monitor.naming import APP, assets_name, base_labels, monitor_name, object_meta, operator_config_name


def prometheus_config(monitor: TidbMonitor, inputs: Inputs) -> Json:
    """The ConfigMap with the configuration of Prometheus, the same for all shards."""
    labels = base_labels(monitor) | {APP: "prometheus"}
    return {
        "metadata": object_meta(monitor, monitor_name(monitor), labels),
        "data": {"prometheus.yml": prometheus_yml(monitor, inputs)},
    }


def operator_config(monitor: TidbMonitor, inputs: Inputs) -> Json:
    """The ConfigMap with the alerts and the dashboard of the operator itself."""
    return {
        "metadata": object_meta(monitor, operator_config_name(monitor)),
        "data": {
            "tidb-operator.rules.yml": inputs.operator_rules,
            "tidb-operator.json": inputs.operator_dashboard,
        },
    }


def assets(monitor: TidbMonitor, inputs: Inputs) -> Json:
    """The Secret with certificates and passwords; it exists even if it is empty."""
    return {
        "metadata": object_meta(monitor, assets_name(monitor)),
        "type": "Opaque",
        "data": dict(sorted(inputs.assets.items())),
    }
