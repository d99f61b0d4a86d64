"""Fields of a TidbMonitor without effect beside the rest of its spec. Pure.

A path may name a whole table.
"""

from typing import TypeAlias

from apis.shared import Json
from member.fields.declared import NoEffect

_Found: TypeAlias = dict[str, NoEffect]

_NOT_PERSISTENT = NoEffect("nothing is kept on volumes", "set persistent to true, or remove it")
_NAMED_SECRET = NoEffect("the Secret has it", "change the Secret")
_GIVEN_FILE = NoEffect("config.configMapRef replaces the configuration", "set it in the ConfigMap, or remove it")
_FORMER_RETENTION = NoEffect("--storage.tsdb.retention.time goes before it", "set spec.prometheus.retentionTime")
_OWN_NAMESPACE = NoEffect("pods mount ConfigMaps of their own namespace", "put the ConfigMap there")
_OF_CLIENTS = NoEffect("only a client checks the name in a certificate")
_OF_GENERATED_FILE = (
    *("externalLabels", "replicaExternalLabelName", "alertmanagerURL", "enableAlertRules"),
    "prometheus.remoteWrite",
)
_OF_COMMAND = tuple(
    f"prometheus.{each}"
    for each in ("logLevel", "reserveDays", "retentionTime", "disableCompaction", "config.commandOptions")
)


def without_effect(spec: Json) -> _Found:
    """The fields that have no effect beside the rest of a user's spec, by path."""
    found: _Found = {}
    if not spec.get("persistent"):
        found |= dict.fromkeys(("storage", "storageClassName", "pvReclaimPolicy"), _NOT_PERSISTENT)
    return found | _of_prometheus(spec) | _of_rules(spec) | _of_thanos(spec) | _of_grafana(spec)


def _of_prometheus(spec: Json) -> _Found:
    own, found = _table(spec, "prometheus"), _Found()
    if own.get("retentionTime"):
        found["prometheus.reserveDays"] = NoEffect("retentionTime goes before it")
    options = _table(own, "config").get("commandOptions")
    for index, each in enumerate(options if isinstance(options, list) else ()):
        if str(each).startswith("--storage.tsdb.retention="):
            found[f"prometheus.config.commandOptions[{index}]"] = _FORMER_RETENTION
    if _table(own, "config").get("configMapRef"):
        found |= dict.fromkeys(_OF_GENERATED_FILE, _GIVEN_FILE)
    for index, each in enumerate(spec.get("additionalContainers") or ()):
        if not isinstance(each, dict) or each.get("name") != "prometheus":
            continue
        if each.get("command"):
            replaced = NoEffect(f"additionalContainers[{index}].command replaces the command", "set it there")
            found |= dict.fromkeys(_OF_COMMAND, replaced)
        elif each.get("args"):
            script = NoEffect("the command is a script without arguments", "set prometheus.config.commandOptions")
            found[f"additionalContainers[{index}].args"] = script
    return found


def _of_rules(spec: Json) -> _Found:
    if _table(_table(spec, "prometheus"), "config").get("ruleConfigRef"):
        rules = NoEffect("config.ruleConfigRef names the rules")
        return {"enableAlertRules": rules, "prometheus.config.ruleConfigRef.namespace": _OWN_NAMESPACE}
    if spec.get("alertmanagerURL"):
        return {"enableAlertRules": NoEffect("alertmanagerURL loads the rules as well")}
    return {}


def _of_thanos(spec: Json) -> _Found:
    own = _table(spec, "thanos")
    names = [each for each in ("objectStorageConfig", "tracingConfig") if own.get(f"{each}File")]
    found = {f"thanos.{name}": NoEffect(f"{name}File goes before it") for name in names}
    found |= {f"thanos.grpcServerTlsConfig.{each}": _OF_CLIENTS for each in ("serverName", "insecureSkipVerify")}
    if "thanos" in spec:
        found["prometheus.disableCompaction"] = NoEffect("Prometheus compacts nothing beside Thanos")
    return found


def _of_grafana(spec: Json) -> _Found:
    own = _table(spec, "grafana")
    found = {f"grafana.{each}": _NAMED_SECRET for each in ("username", "password") if own.get(f"{each}Secret")}
    variables = {
        "GF_LOG_LEVEL": ("logLevel",),
        "GF_SECURITY_ADMIN_USER": ("username", "usernameSecret"),
        "GF_SECURITY_ADMIN_PASSWORD": ("password", "passwordSecret"),
    }
    for name, fields in variables.items():
        if name in _table(own, "envs"):
            why = NoEffect(f"envs sets {name}", f"remove it, or {name}")
            found |= {f"grafana.{field}": why for field in fields}
    return found


def _table(spec: Json, name: str) -> Json:
    """A table of a spec; empty if it is absent."""
    found = spec.get(name)
    return found if isinstance(found, dict) else {}
