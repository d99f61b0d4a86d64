"""Pump's objects (objects.md 4.8, 6.4, 7.7)."""

import msgspec
import pytest

from kube.objects import Json
from member.apply.last_applied import stamped, template_change, with_running_template
from member.pump import desired as pump
from tests.member.clusters import TLS, cluster, container_of, names, pod_of, values

PUMP: Json = {"replicas": 2, "requests": {"storage": "1Gi"}}


def _pump(**fields: object) -> Json:
    return pump.stateful_set(cluster(pump=PUMP | fields), "cm")


@pytest.mark.rule("objects-1.1")
def test_the_service_has_no_suffix_and_no_used_by_label() -> None:
    (service,) = pump.services(cluster(pump=PUMP))
    assert "demo-pump" == service["metadata"]["name"] == _pump()["spec"]["serviceName"]
    assert "app.kubernetes.io/used-by" not in service["metadata"]["labels"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, {}),
        ({"setTimeZone": True}, {"TZ": "UTC"}),
        ({"env": [{"name": "A", "value": "b"}]}, {"A": "b"}),
    ],
)
@pytest.mark.rule("objects-4.8")
def test_sets_the_time_zone_only_on_request(spec: Json, expected: Json) -> None:
    made = pump.stateful_set(cluster(timezone="UTC", pump=PUMP | spec), "cm")
    assert expected == values(container_of(made, "pump") | {"env": container_of(made, "pump").get("env", [])})


@pytest.mark.rule("objects-4.8")
def test_the_host_name_is_the_pods_with_the_nodes_network() -> None:
    (variable,) = container_of(_pump(hostNetwork=True), "pump")["env"]
    assert ("HOSTNAME", "metadata.name") == (variable["name"], variable["valueFrom"]["fieldRef"]["fieldPath"])


@pytest.mark.rule("objects-4.8")
def test_mounts_and_volumes_in_order_and_what_v16_ignores() -> None:
    own = {"additionalVolumes": [{"name": "x", "emptyDir": {}}]}
    own |= {"additionalVolumeMounts": [{"name": "x", "mountPath": "/x"}]}
    tc = cluster(tlsCluster=TLS, startScriptVersion="v2", pump=PUMP | own)
    made = pump.stateful_set(tc, "cm")
    assert ["data", "config", "pump-tls", "annotations", "x"] == names(container_of(made, "pump")["volumeMounts"])
    assert ["config", "pump-tls", "annotations", "x"] == names(pod_of(made)["volumes"])
    assert ["data"] == names(made["spec"]["volumeClaimTemplates"])


@pytest.mark.rule("objects-6.4")
def test_tls_is_put_into_the_configuration() -> None:
    text = pump.content(cluster(tlsCluster=TLS, pump=PUMP | {"config": "gc = 2"})).data["pump-config"]
    assert "gc = 2\n" in text
    assert 'ssl-key = "/var/lib/pump-tls/tls.key"' in text


@pytest.mark.rule("objects-3.8")
def test_delete_slots_are_not_copied() -> None:
    tc = cluster(pump=PUMP, annotations={"pump.tidb.pingcap.com/delete-slots": "[1]"})
    assert "annotations" not in pump.stateful_set(tc, "cm")["metadata"]


def of_v16(made: Json) -> Json:
    """A StatefulSet whose pods run a script of v1.6."""
    live: Json = msgspec.json.decode(msgspec.json.encode(made))
    container_of(live, "pump")["command"][2] = "set -euo pipefail\n/pump\n"
    return stamped(live)


@pytest.mark.rule("objects-11.1")
def test_a_script_of_v16_stays_until_something_else_changes() -> None:
    live = of_v16(_pump())
    kept = with_running_template(live, _pump())
    assert None is template_change(live, kept)
    assert container_of(live, "pump")["command"] == container_of(kept, "pump")["command"]
    assert template_change(live, _pump(version="v8.5.1"))
    changed = with_running_template(live, _pump(version="v8.5.1"))
    assert container_of(_pump(), "pump")["command"] == container_of(changed, "pump")["command"]


@pytest.mark.rule("objects-11.1")
def test_a_script_of_v16_is_replaced_when_its_inputs_change() -> None:
    live, wanted = of_v16(_pump()), _pump(config={"log-level": "warn"})
    assert wanted == with_running_template(live, wanted, _pump)
    assert with_running_template(live, wanted) == with_running_template(live, wanted, lambda: wanted) != wanted


@pytest.mark.rule("objects-11.1")
def test_a_generated_script_and_a_users_script_are_compared() -> None:
    sidecar = [{"name": "beside", "image": "busybox:1", "command": ["/bin/sh", "-c", "sleep 1"]}]
    other = [sidecar[0] | {"command": ["/bin/sh", "-c", "sleep 2"]}]
    assert template_change(stamped(_pump(additionalContainers=sidecar)), _pump(additionalContainers=other))
    assert template_change(stamped(_pump()), _pump(config={"log-level": "warn"}))
