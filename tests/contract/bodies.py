"""Makers of the objects in which something is wrong."""

from typing import Any

from kube.objects import Json
from tests.contract.objects import (
    IMAGE,
    claim_spec,
    config_map,
    pod,
    stateful_set,
)

CONTAINER: Json = {"name": "main", "image": IMAGE}
CLAIM: Json = {"metadata": {"name": "c"}, "spec": claim_spec()}


def container(**fields: Any) -> Json:
    """A pod whose container has these fields, too."""
    return pod("a", containers=[CONTAINER | fields])


def service(ports: list[Json], name: str = "a", **spec: Any) -> Json:
    """A Service."""
    meta = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": meta,
        "spec": {"selector": {"a": "b"}, "ports": ports, **spec},
    }


def pods(**spec: Any) -> Json:
    """A StatefulSet whose pods have these fields, too."""
    made = stateful_set("a")
    made["spec"]["template"]["spec"] |= spec
    return made


def job(name: str = "a", **spec: Any) -> Json:
    """A Job."""
    template = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template, **spec}}


def ingress(**spec: Any) -> Json:
    """An Ingress."""
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "a"}, "spec": spec}


def with_replicas(replicas: object) -> Json:
    """A StatefulSet with something for a number of replicas."""
    made = stateful_set("a")
    made["spec"]["replicas"] = replicas
    return made


def annotated(workload: Json) -> Json:
    """A workload whose pods have an annotation of a bad name."""
    workload["spec"]["template"]["metadata"]["annotations"] = {"a b": "x"}
    return workload


def settings(**fields: Any) -> Json:
    """A ConfigMap."""
    return config_map("u", a="x") | fields
