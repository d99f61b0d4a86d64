"""Settings that have no effect are named with what holds and the way out (objects.md 7, 6.4)."""

from collections.abc import Iterator

import pytest

from apis.accessor import workloads
from apis.components import ComponentType, component_types
from apis.decoding import decode
from apis.defaulting import with_defaults
from apis.dmcluster import DMCluster
from apis.ordinals import desired_replicas
from apis.problem import Problem
from apis.shared import Json
from apis.tidbcluster import TidbCluster
from apis.validation import Running, immutability
from kube.objects import condition_of
from kube.resources import SECRETS
from member.components import workload
from member.fields.settings import overridden, server_flags
from ports.clock import FakeClock
from simulate.engine import certificates
from simulate.engine.trees import merged
from simulate.engine.worlds import CLUSTERS
from tests.apis.clusters import minimal
from tests.operator_world import NAMESPACE, OperatorWorld, sample

IN_VAIN = "in-vain"
EVERY: Json = {
    "version": "v8.5.2",
    "pd": {"replicas": 1, "mode": "ms", "requests": {"storage": "1Gi"}},
    "pdms": [{"name": "tso", "replicas": 1}, {"name": "scheduling", "replicas": 1}],
    "tikv": {"replicas": 1, "requests": {"storage": "1Gi"}},
    "tidb": {"replicas": 1, "plugins": ["a"]},
    "tiflash": {"replicas": 1, "storageClaims": [{"resources": {"requests": {"storage": "1Gi"}}}]},
    "ticdc": {"replicas": 1},
    "tici": {"meta": {"replicas": 1}, "worker": {"replicas": 1}},
    "tiproxy": {"replicas": 1},
    "pump": {"replicas": 1, "requests": {"storage": "1Gi"}},
    "enableDynamicConfiguration": True,
    "tlsCluster": {"enabled": True},
}
DM: Json = {
    "version": "v8.5.2",
    "master": {"replicas": 1, "storageSize": "1Gi"},
    "worker": {"replicas": 1, "storageSize": "1Gi"},
}
MOUNTED: Json = {"annotations": {"tiflash.tidb.pingcap.com/mount-cm-in-tiflash-container": "true"}}


def problems(spec: Json) -> list[Problem]:
    kind = DMCluster if "master" in spec else TidbCluster
    return overridden(with_defaults(decode({"metadata": {"name": "c", "namespace": "ns"}, "spec": spec}, kind)))


def fields(spec: Json) -> list[str]:
    return [each.field for each in problems(spec)]


def nested(path: str, value: object) -> Json:
    name, _, rest = path.partition(".")
    return {name: nested(rest, value) if rest else value}


def rows() -> Iterator[tuple[ComponentType, str]]:
    for kind in ("TidbCluster", "DMCluster"):
        yield from ((row, flag) for row in component_types(kind) for flag, each in row.flags.items() if each.path)


HONOURED = {("ticdc", "log-file"), ("ticdc", "log-level"), ("pump", "L")}
"""Flags to which the start script gives what the setting says."""
BY_ENVIRONMENT = {("tikv", "labels")}
"""Flags that only a variable of the user's brings in."""


@pytest.mark.parametrize(("row", "flag"), [pytest.param(*each, id=f"{each[0].name}-{each[1]}") for each in rows()])
def test_names_each_setting_that_a_flag_overrides(row: ComponentType, flag: str) -> None:
    base = DM if row.of == "DMCluster" else EVERY
    setting = row.flags[flag]
    config: Json = {"config": nested(setting.path, IN_VAIN)}
    own = {"config": config} | MOUNTED if row.name == "tiflash" else config
    named = [each for each in problems(laid_onto(base, row, own)) if each.value == IN_VAIN]
    if (row.name, flag) in HONOURED | BY_ENVIRONMENT:
        assert [] == named
        return
    (problem,) = named
    assert problem.field.endswith(f"config.{setting.path}")
    assert problem.message.startswith("has no effect, because ")
    assert problem.message.endswith(setting.instead)


def flags_of(words: tuple[str, ...]) -> dict[str, str]:
    """The flags of a command line, without dashes."""
    found = {}
    for word, after in zip(words, [*words[1:], ""], strict=True):
        flag, given, value = word.lstrip("-").partition("=")
        if word.startswith("-") and flag:
            found[flag] = value if given else after
    return found


def laid_onto(base: Json, row: ComponentType, own: Json) -> Json:
    """The spec, with additions to the spec of a component."""
    (field, content), *_ = row.slot.tree(own).items()
    if isinstance(content, list):
        content = [merged(each, own) if each["name"] == row.name else each for each in base[field]]
        return base | {field: content}
    return merged(base, {field: content})


@pytest.mark.parametrize(
    ("component", "config", "key"),
    [
        ("pd", {"client-urls": "http://127.0.0.1:2379"}, "client-urls"),
        ("pd", {"client-urls": "http://0.0.0.0:12379"}, "client-urls"),
        ("pd", {"Peer-Urls": "http://0.0.0.0:12380"}, "Peer-Urls"),
        ("pd", {"advertise-client-urls": "http://pd.example.com:2379"}, "advertise-client-urls"),
        ("pd", 'advertise-peer-urls = "http://10.0.0.1:2380"', "advertise-peer-urls"),
        ("pd", 'join = "http://other-pd:2379"', "join"),
        ("tikv", {"server": {"addr": "0.0.0.0:20161"}}, "server.addr"),
        ("tikv", '[server]\nstatus-addr = ""', "server.status-addr"),
        ("tikv", {"raftstore": {"capacity": "100GB"}}, "raftstore.capacity"),
        ("tikv", {"pd": {"endpoints": ["other-pd:2379"]}}, "pd.endpoints"),
        ("tidb", {"host": "127.0.0.1"}, "host"),
        ("tidb", {"log": {"slow-query-file": "/tmp/slow.log"}}, "log.slow-query-file"),
        ("tiproxy", {"proxy": {"pd-addrs": "other:2379"}}, "proxy.pd-addrs"),
        ("tiproxy", 'workdir = "/tmp"', "workdir"),
    ],
)
def test_a_setting_that_does_not_hold_is_named_by_its_key(component: str, config: Json | str, key: str) -> None:
    own = {"tiproxy": {"replicas": 1}} if component == "tiproxy" else {}
    assert [f"spec.{component}.config.{key}"] == fields(merged(minimal(**own), {component: {"config": config}}))


@pytest.mark.parametrize(
    "parts",
    [
        {"pd": {"config": {"client-urls": "http://0.0.0.0:2379", "initial-cluster-token": "a"}}},
        {"tikv": {"config": '[server]\naddr = "[::]:20160"\n[storage]\ndata-dir = "/var/lib/tikv"\n'}},
        {"tikv": {"config": {"pd": {"endpoints": ["http://c-pd:2379"]}}}},
        {"tidb": {"config": {"log": {"slow-query-file": "/tmp/slow.log"}}, "separateSlowLog": False}},
        {"tidb": {"config": {"binlog": {"enable": False}, "performance": {"max-procs": 4}}}},
        {"ticdc": {"replicas": 1, "config": {"gc-ttl": 100, "log-level": "warn", "data-dir": "/data", "tz": "UTC"}}},
    ],
)
def test_a_setting_that_holds_is_not_named(parts: Json) -> None:
    assert [] == fields(minimal(**parts))


def test_names_a_users_certificate_beside_tls() -> None:
    config: Json = {"security": {"ca-path": "/own/ca.crt", "redact-info-log": True}}
    (problem,) = problems(minimal(tikv={"config": config}) | {"tlsCluster": {"enabled": True}})
    assert "spec.tikv.config.security.ca-path" == problem.field
    assert '"/own/ca.crt": has no effect, because the operator writes "/var/lib/tikv-tls/ca.crt"; remove it' in str(
        problem
    )
    assert [] == fields(minimal(tikv={"config": config}))


def test_settings_with_which_members_do_not_join_are_refused_until_pd_runs() -> None:
    spec = minimal(pd={"config": {"initial-cluster": "pd-0=http://pd-0:2380"}})
    tc = with_defaults(decode({"metadata": {"name": "c", "namespace": "ns"}, "spec": spec}, TidbCluster))
    assert ["spec.pd.config.initial-cluster"] == [each.field for each in immutability(tc, Running())]
    assert ["spec.pd.config.initial-cluster"] == fields(spec)
    runs = Running(images={"pd": "pingcap/pd:v8.5.2"})
    assert [] == [each.field for each in immutability(tc, runs)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["complete", "complete-tls", "micro"])
def test_servers_get_no_flag_without_a_row_and_the_values_that_are_foreseen(clock: FakeClock, name: str) -> None:
    world = OperatorWorld(clock=clock)
    cluster = CLUSTERS[name]() | {"metadata": {"name": "basic"}}
    cluster["spec"] |= {"enableDynamicConfiguration": True}
    for secret in certificates.secrets(cluster, NAMESPACE):
        world.admin.create(SECRETS, secret, NAMESPACE)
    world.apply(cluster)
    world.run_until_ready(within=600.0)
    tc = with_defaults(decode(world.cluster(), TidbCluster))
    seen = set()
    for own in workloads(tc):
        pod = f"basic-{own.name}-0"
        expected = server_flags(own, workload(own.name).content(tc))
        for running in world.world.data_plane.running(NAMESPACE, pod):
            if running.launch.command[0].rpartition("/")[2] == "sh":
                continue  # a sidecar that prints a log
            given = flags_of(running.launch.command[1:])
            assert set() == given.keys() - own.type.flags.keys(), own.name
            foreseen = {flag: value.replace("<pod>", pod) for flag, value in expected.items()}
            assert foreseen == {flag: given[flag] for flag in foreseen}
            seen.add(own.name)
    assert {own.name for own in workloads(tc) if desired_replicas(tc, own.name)} == seen
    world.stop()


@pytest.mark.slow
def test_a_cluster_reports_its_overrides_until_they_are_corrected(clock: FakeClock) -> None:
    basic = OperatorWorld(clock=clock)
    basic.apply(sample("basic"))
    basic.run_until_ready()
    basic.change(tikv={"config": {"storage": {"data-dir": "/data/tikv"}}})
    basic.run(1.0)
    told = condition_of(basic.cluster()["status"]["conditions"], "SettingsOverridden")
    assert ("True", "SettingsOverridden") == (told["status"], told["reason"])
    assert told["message"].startswith('spec.tikv.config.storage.data-dir: "/data/tikv": has no effect, because')
    basic.restart()
    basic.run_until_ready(within=120.0)
    assert [1] == [each["count"] for each in basic.events("SettingsOverridden")]
    basic.change(tikv={"config": {"storage": {"data-dir": None}}})
    basic.run(1.0)
    assert "False" == condition_of(basic.cluster()["status"]["conditions"], "SettingsOverridden")["status"]
    basic.stop()
