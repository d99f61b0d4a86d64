"""The configuration of a monitor, made ready for a Prometheus outside of its pod by its own script."""

import base64
import subprocess
from collections.abc import Mapping
from pathlib import Path

import yaml

from kube.objects import Json
from member.monitor.configuration import OPERATOR_RULES
from member.monitor.naming import ASSETS


def rendered(stateful_set: Json, config_maps: dict[str, Json], directory: Path, pod: str, namespace: str) -> Json:
    """The result of the container's script on the ConfigMap that its StatefulSet mounts.

    The script runs up to the start of Prometheus, with its directories below `directory`.
    """
    container = stateful_set["spec"]["template"]["spec"]["containers"][0]
    source, made = directory / "config", directory / "config_out"
    for each in (source, made):
        each.mkdir(parents=True, exist_ok=True)
    name = stateful_set["metadata"]["name"].partition("-shard-")[0]
    (source / "prometheus.yml").write_text(config_maps[name]["data"]["prometheus.yml"])
    script: str = container["command"][2]
    script = script.partition("exec /bin/prometheus")[0].replace("/etc/prometheus", str(directory))
    values = {each["name"]: each.get("value", "") for each in container["env"]}
    environment = values | {"POD_NAME": pod, "NAMESPACE": namespace, "PATH": "/usr/bin:/bin"}
    subprocess.run(["/bin/sh", "-c", script], env=environment, check=True)
    tree: Json = yaml.safe_load((made / "prometheus.yml").read_text())
    return tree


def moved(tree: Json, directory: Path, config_maps: dict[str, Json], assets_in: Mapping[str, str] | None = None) -> str:
    """The configuration and its files, written below a directory.

    `assets_in` is the data of the Secret that the pod mounts; without it the files are empty.
    """
    text = yaml.safe_dump(tree, sort_keys=False)
    assets, rules = directory / "assets", directory / "operator-rules"
    for each in (assets, rules):
        each.mkdir(exist_ok=True)
    for line in text.splitlines():
        _, _, value = line.partition(": ")
        if value.startswith(ASSETS):
            name = value.rpartition("/")[2]
            (assets / name).write_bytes(base64.b64decode((assets_in or {}).get(name, "")))
    for name, config_map in config_maps.items():
        if name.endswith("-operator"):
            (rules / "tidb-operator.rules.yml").write_text(config_map["data"]["tidb-operator.rules.yml"])
    return text.replace(ASSETS, str(assets)).replace(OPERATOR_RULES, str(rules))
