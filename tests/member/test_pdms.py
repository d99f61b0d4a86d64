"""The objects of PD's microservices (objects.md 2.1, 4.2, 6.4)."""

from typing import Any

import pytest

from kube.objects import Json
from member.pdms import desired as pdms
from tests.member.clusters import TLS, cluster, container_of, names, pod_of


def made(spec: Json | None = None, **fields: Any) -> Json:
    return pdms.stateful_set(cluster(pd={"mode": "ms"}, pdms=[tso(**(spec or {}))], **fields), "tso", "cm")


def tso(**fields: Any) -> Json:
    return {"name": "tso", "replicas": 2, **fields}


@pytest.mark.rule("objects-2.1")
def test_the_service_is_as_wished_and_its_type_may_come_from_the_deprecated_list() -> None:
    tc = cluster(pd={"mode": "ms"}, pdms=[tso()], services=[{"name": "tso", "type": "NodePort"}])
    assert ["demo-tso", "demo-tso-peer"] == names(pdms.services(tc, "tso"))
    assert "NodePort" == pdms.services(tc, "tso")[0]["spec"]["type"]
    own = {"service": {"type": "LoadBalancer", "portName": "tso", "labels": {"a": "b"}}}
    service = pdms.services(cluster(pd={"mode": "ms"}, pdms=[tso(**own)]), "tso")[0]
    assert ("LoadBalancer", "tso") == (service["spec"]["type"], service["spec"]["ports"][0]["name"])
    assert "b" == service["metadata"]["labels"]["a"]


@pytest.mark.rule("objects-4.2")
def test_mounts_and_volumes_in_order() -> None:
    volume = {"name": "log", "storageSize": "1Gi", "mountPath": "/log"}
    more = {"mountClusterClientSecret": True, "additionalVolumeMounts": [{"name": "x", "mountPath": "/x"}]}
    stateful_set = made({"storageVolumes": [volume]} | more, tlsCluster=TLS)
    generated = ["annotations", "config", "startup-script", "pd-tls", "cluster-client-tls"]
    assert [*generated, "tso-log", "x"] == names(container_of(stateful_set, "tso")["volumeMounts"])
    assert generated == names(pod_of(stateful_set)["volumes"])
    assert ["tso-log"] == names(stateful_set["spec"]["volumeClaimTemplates"])
    (secret,) = [each["secret"] for each in pod_of(stateful_set)["volumes"] if each["name"] == "pd-tls"]
    assert "demo-pd-cluster-secret" == secret["secretName"]


@pytest.mark.rule("objects-4.2")
def test_additional_mounts_need_no_storage_volume() -> None:
    mounts = made({"additionalVolumeMounts": [{"name": "x", "mountPath": "/x"}]})
    assert ["annotations", "config", "startup-script", "x"] == names(container_of(mounts, "tso")["volumeMounts"])


@pytest.mark.rule("objects-3.2")
def test_without_an_image_of_its_own_it_runs_pds() -> None:
    assert "pingcap/pd:v8.5.0" == container_of(made({"baseImage": ""}), "tso")["image"]


@pytest.mark.rule("objects-6.4")
def test_tls_is_put_into_the_configuration() -> None:
    tc = cluster(tlsCluster=TLS, pd={"mode": "ms"}, pdms=[tso(config={"log": {"level": "warn"}})])
    text = pdms.content(tc, "tso").data["config-file"]
    assert 'level = "warn"' in text
    assert 'cacert-path = "/var/lib/pd-tls/ca.crt"' in text


@pytest.mark.rule("objects-1.1")
def test_without_the_mode_no_pod_is_wanted() -> None:
    assert 0 == pdms.stateful_set(cluster(pdms=[tso()]), "tso", "cm")["spec"]["replicas"]
