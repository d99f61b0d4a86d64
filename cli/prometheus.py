"""A monitor's configuration for a Prometheus on this machine, which reaches the sandbox from outside."""

from pathlib import Path

import yaml

from kube.client import Client
from kube.resources import CONFIG_MAPS

_POD = {"$(SHARD)": "0", "$(POD_NAME)": "sandbox", "$(NAMESPACE)": "sandbox"}


def write_configuration(client: Client, monitor: tuple[str, str], directory: Path, proxy: str) -> Path | None:
    """Write `prometheus.yml` beside the kubeconfig in a directory; return its path, or None without a configuration.

    It finds pods through the kubeconfig's API server, and scrapes them through the proxy. Files mounted into the pod
    are missing. Raises ApiError, TransportError.
    """
    namespace, name = monitor
    found = client.find(CONFIG_MAPS, f"{name}-monitor", namespace)
    if found is None:
        return None
    text = found.decode()["data"]["prometheus.yml"]
    for placeholder, value in _POD.items():
        text = text.replace(placeholder, value)
    tree = yaml.safe_load(text)
    tree.pop("rule_files", None)
    for job in tree.get("scrape_configs") or ():
        job["proxy_url"] = proxy
        for discovery in job.get("kubernetes_sd_configs") or ():
            discovery.pop("api_server", None)
            discovery["kubeconfig_file"] = str(directory / "kubeconfig")
    path = directory / "prometheus.yml"
    path.write_text(yaml.safe_dump(tree, sort_keys=False), encoding="utf-8")
    return path
