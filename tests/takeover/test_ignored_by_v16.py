"""Fields that v1.6 ignored take effect with the user's next change, not at the take-over."""

import pytest

from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from kube.resources import CONFIG_MAPS, STATEFUL_SETS
from member.objects.config_map import digest
from member.tiflash import desired
from ports.clock import FakeClock
from tests.operator_world import NAMESPACE
from tests.takeover.halfway import NAME, Halfway

pytestmark = pytest.mark.slow

SYSCTLS: Json = {
    "annotations": {"tidb.pingcap.com/sysctl-init": "true"},
    "podSecurityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1024"}]},
}
PUMP: Json = {
    "baseImage": "pingcap/tidb-binlog",
    "replicas": 1,
    "requests": {"storage": "1Gi"},
    "additionalVolumes": [{"name": "extra", "emptyDir": {}}],
    "additionalVolumeMounts": [{"name": "extra", "mountPath": "/extra"}],
} | SYSCTLS
TSO: Json = {"name": "tso", "replicas": 2, "additionalVolumeMounts": [{"name": "annotations", "mountPath": "/extra"}]}
FLASH: Json = {
    "baseImage": "pingcap/tiflash",
    "version": "our-build-7",
    "replicas": 1,
    "storageClaims": [{"resources": {"requests": {"storage": "1Gi"}}}],
}
PROXY: Json = {"baseImage": "pingcap/tiproxy", "version": "v1.3.0", "replicas": 1, "readinessProbe": {"type": "tcp"}}
TEAM: Json = {"labels": {"team": "a"}}


@pytest.mark.parametrize(
    ("spec", "component", "change", "ignored"),
    [
        ({"pump": PUMP, "tidb": {"version": "v7.5.0"}}, "pump", {"pump": TEAM}, "/extra"),
        ({"pdms": [TSO], "pd": {"mode": "ms"}, "serviceAccount": "default"}, "tso", {"pdms": [TSO | TEAM]}, "/extra"),
        ({"tiproxy": PROXY}, "tiproxy", {"tiproxy": TEAM}, "readinessProbe"),
    ],
    ids=["Pump", "microservices", "TiProxy"],
)
@pytest.mark.rule("3.5")
def test_fields_that_v16_ignored_take_effect_with_the_next_change(
    clock: FakeClock, spec: Json, component: str, change: Json, ignored: str
) -> None:
    halfway = Halfway(clock, spec, pd=1, tikv=1, tidb=1)
    assert ignored not in str(halfway.world.get(STATEFUL_SETS, f"{NAME}-{component}")["spec"])
    assert set() == halfway.take_over()
    pods = halfway.left.pods()
    halfway.world.restart()
    halfway.world.run(60.0)
    assert ("Done", pods) == (halfway.world.reason(), halfway.left.pods())
    halfway.world.change(**change)
    halfway.world.run(5.0)
    halfway.world.run_until_ready(within=300.0)
    assert ignored in str(halfway.world.get(STATEFUL_SETS, f"{NAME}-{component}")["spec"])
    halfway.world.stop()


@pytest.mark.rule("8.1")
def test_an_image_beside_the_untagged_default_that_v16_ran_restarts_nothing(clock: FakeClock) -> None:
    """The version is unknown: the tag of `image` may be an older one."""
    cdc: Json = {"baseImage": "pingcap/ticdc", "version": "", "replicas": 1}
    halfway = Halfway(clock, {"ticdc": cdc}, pd=1, tikv=1, tidb=1)
    halfway.world.change(ticdc={"image": "pingcap/ticdc:v6.5.0"})
    assert set() == halfway.take_over()
    halfway.world.change(ticdc={"replicas": 2} | TEAM)
    halfway.world.run(60.0)
    halfway.world.run_until_ready(within=300.0)
    pod = halfway.world.get(STATEFUL_SETS, f"{NAME}-ticdc")["spec"]["template"]["spec"]
    assert ["pingcap/ticdc"] == [each["image"] for each in pod["containers"]]
    halfway.world.stop()


@pytest.mark.rule("6.7")
def test_tiflash_whose_version_is_no_number_keeps_its_configuration(clock: FakeClock) -> None:
    """Its pods, which no registry has, need not run for that."""
    halfway = Halfway(clock, {"tiflash": FLASH}, pd=1, tikv=1, tidb=1)
    tc = with_defaults(decode(halfway.world.cluster(), TidbCluster))
    texts, awaited = (dict(content(tc).data) for content in (desired.configured_by_v16, desired.content))
    name = f"{NAME}-tiflash-{digest(texts)}"
    (made,) = (each["metadata"] for each in halfway.world.every(CONFIG_MAPS) if "tiflash" in each["metadata"]["name"])
    meta = {key: made[key] for key in ("labels", "ownerReferences")} | {"name": name}
    halfway.admin.create(CONFIG_MAPS, {"metadata": meta, "data": texts}, NAMESPACE)
    halfway.update("tiflash", lambda spec: spec["template"]["spec"]["volumes"][1]["configMap"].update(name=name))
    halfway.world.world.run_until_settled()
    for _ in range(2):
        halfway.world.run(60.0)
        assert texts == configuration(halfway, "tiflash")
        halfway.world.restart()
    halfway.world.change(tiflash=TEAM)
    halfway.world.run(60.0)
    assert awaited == configuration(halfway, "tiflash")
    halfway.world.stop()


def configuration(halfway: Halfway, component: str) -> Json:
    """The data of the ConfigMap that pods mount."""
    volumes = halfway.world.get(STATEFUL_SETS, f"{NAME}-{component}")["spec"]["template"]["spec"]["volumes"]
    (name,) = [each["configMap"]["name"] for each in volumes if "configMap" in each]
    found: Json = halfway.world.get(CONFIG_MAPS, name)["data"]
    return found
