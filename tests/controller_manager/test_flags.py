"""The command line."""

from dataclasses import asdict

import pytest

from controller_manager.features import FeatureGates
from controller_manager.flags import Options, flag_lines, parse
from kube.resources import NODES, PERSISTENT_VOLUMES, STORAGE_CLASSES, Resource

ENVIRON = {"NAMESPACE": "tidb-admin"}


def options(*argv: str, **environ: str) -> Options:
    return parse(argv, ENVIRON | environ, "v0.1")


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The message for a refused command line."""
    with pytest.raises(SystemExit) as exit_:
        parse(argv, ENVIRON, "v0.1")
    assert 2 == exit_.value.code
    return capsys.readouterr().err


@pytest.mark.rule("3.1")
def test_defaults() -> None:
    assert {
        "namespace": "tidb-admin",
        "helm_release": "",
        "kubeconfig": "",
        "workers": 5,
        "cluster_scoped": True,
        "cluster_permission_node": False,
        "cluster_permission_pv": False,
        "cluster_permission_sc": False,
        "selector": "",
        "features": {
            "stable_scheduling": True,
            "advanced_stateful_set": False,
            "volume_modifying": False,
            "volume_replacing": False,
        },
        "auto_failover": True,
        "pd_failover_period": 300,
        "tikv_failover_period": 300,
        "tidb_failover_period": 300,
        "tiflash_failover_period": 300,
        "dm_master_failover_period": 300,
        "dm_worker_failover_period": 300,
        "detect_node_failure": False,
        "pod_hard_recovery_period": 86400,
        "resync_duration": 30,
        "kube_client_qps": 50,
        "kube_client_burst": 100,
        "drain_timeout": 30,
        "leader_lease_duration": 15,
        "leader_renew_deadline": 10,
        "leader_retry_period": 2,
        "leader_resource_lock": "leases",
        "tidb_backup_manager_image": "tidb-operator-py-backup-manager:latest",
        "tidb_discovery_image": "pingcap/tidb-operator:latest",
        "cross_namespace_references": {"is_open": False, "pairs": frozenset()},
        "metrics_addr": ":6060",
        "debug_addr": "",
        "admission_webhook": "",
        "admission_webhook_addr": ":9443",
        "observe": False,
        "shards": 1,
        "v": 0,
        "without_effect": (),
    } == asdict(options())


@pytest.mark.parametrize("form", ["-workers=7", "--workers=7", "-workers 7", "--workers 7"])
@pytest.mark.rule("3.1")
def test_one_dash_works_like_two(form: str) -> None:
    assert 7 == options(*form.split()).workers


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("-auto-failover", True),
        ("--auto-failover=true", True),
        ("-auto-failover=false", False),
        ("-auto-failover=0", False),
        ("-auto-failover false", False),
    ],
)
@pytest.mark.rule("3.1")
def test_booleans(form: str, value: bool) -> None:
    assert value is options(*form.split(), "-workers=1").auto_failover


@pytest.mark.rule("3.1")
def test_every_failover_period_is_a_duration() -> None:
    components = ("pd", "tikv", "tidb", "tiflash", "dm-master", "dm-worker")
    given = options(*(f"-{component}-failover-period=1h30m" for component in components))
    assert {5400.0} == {getattr(given, f"{name.replace('-', '_')}_failover_period") for name in components}


@pytest.mark.rule("3.1")
def test_the_chart_of_v1_6_starts_us() -> None:
    """The arguments that its Deployment passes."""
    given = options(
        "-tidb-backup-manager-image=pingcap/tidb-backup-manager:v1.6.0",
        "-tidb-discovery-image=pingcap/tidb-operator:v1.6.0",
        "-cluster-scoped=true",
        "-cluster-permission-node=true",
        "-cluster-permission-pv=true",
        "-cluster-permission-sc=false",
        "-auto-failover=true",
        "-pd-failover-period=5m",
        "-tikv-failover-period=5m",
        "-v=2",
        "-logtostderr",
        "-vmodule=pd=4",
        "-selector=version!=canary",
        "-features=VolumeModifying=true",
    )
    assert (2, "version!=canary") == (given.v, given.selector)


def test_0_means_the_clients_defaults() -> None:
    given = options("-kube-client-qps=0", "-kube-client-burst=0")
    assert (50, 100) == (given.kube_client_qps, given.kube_client_burst)
    assert 2.5 == options("-kube-client-qps=2.5").kube_client_qps


def test_the_kubeconfig_flag_beats_the_environment() -> None:
    assert "env" == options(KUBECONFIG="env").kubeconfig
    assert "flag" == options("-kubeconfig=flag", KUBECONFIG="env").kubeconfig


@pytest.mark.rule("23")
def test_the_lease_carries_the_release() -> None:
    assert "tidb-controller-manager" == options().lease_name
    assert "tidb-controller-manager-blue" == options(HELM_RELEASE="blue").lease_name


@pytest.mark.rule("3.7")
def test_features() -> None:
    given = options("-features=VolumeModifying=t, StableScheduling=false,").features
    assert FeatureGates(stable_scheduling=False, volume_modifying=True) == given


@pytest.mark.parametrize(
    ("flags", "periods"),
    [
        ((), (15, 10, 2)),
        (("--shards=1",), (15, 10, 2)),
        (("--shards=3",), (10, 7, 2)),
        (("--shards=3", "--leader-renew-deadline=12s"), (15, 12, 2)),
    ],
)
def test_leases_of_shards_last_for_less_unless_flags_say_otherwise(flags: tuple[str, ...], periods: object) -> None:
    given = options(*flags)
    assert periods == (given.leader_lease_duration, given.leader_renew_deadline, given.leader_retry_period)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("-features=Unknown=true", "unknown feature 'Unknown'; known are AdvancedStatefulSet, StableScheduling"),
        ("-features=VolumeModifying", "missing bool value for VolumeModifying"),
        ("-features=VolumeModifying=yes", "'yes' is not a boolean"),
        ("-leader-resource-lock=endpointsleases", "use leases"),
        ("-leader-lease-duration=10s", "--leader-lease-duration must be greater than --leader-renew-deadline"),
        ("-leader-retry-period=9s", "--leader-renew-deadline must be greater than 1.2 times --leader-retry-period"),
        ("-leader-retry-period=0", "--leader-retry-period must be greater than 0"),
        ("-workers=0", "argument --workers: must be at least 1"),
        ("-workers=99999999999", "argument --workers: must be at most 1000"),
        ("-workers=many", "'many' is not a non-negative integer"),
        ("-kube-client-qps=nan", "'nan' is not a non-negative number"),
        ("-resync-duration=30", "argument --resync-duration: '30' is not a duration"),
        ("-metrics-addr=6060", "'6060' is not an address to listen on"),
        ("-selector=a in (", "requirement 'a in ('; write for example team=a,tier in (gold,silver),!canary"),
        ("-worker=3", "unrecognized arguments: --worker=3"),
        ("stray", "unrecognized arguments: stray"),
    ],
)
def test_a_wrong_flag_is_refused_with_a_way_out(
    capsys: pytest.CaptureFixture[str], argument: str, message: str
) -> None:
    assert message in refusal(capsys, argument)


@pytest.mark.parametrize("environ", [{}, {"NAMESPACE": ""}])
@pytest.mark.rule("3.1")
def test_without_a_namespace_the_connection_names_it(environ: dict[str, str]) -> None:
    assert "" == parse((), environ, "v0.1").namespace


@pytest.mark.parametrize("flag", ["-V", "-version", "--version"])
@pytest.mark.rule("3.1")
def test_the_version_is_printed(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    with pytest.raises(SystemExit) as exit_:
        options(flag)
    assert (0, "v0.1\n") == (exit_.value.code, capsys.readouterr().out)


def test_help_names_every_flag_and_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options("-help")
    text = " ".join(capsys.readouterr().out.split())

    for line in flag_lines(options()):
        assert line.removeprefix("FLAG: ").partition("=")[0] in text
    assert "how long to wait before a failed tikv member is replaced (default 5m0s)" in text


@pytest.mark.parametrize(
    ("argument", "beginning"),
    [
        ("-test-mode", "-test-mode has no effect: "),
        ("--log_dir=/var/log", "-log_dir has no effect: logs go to stderr"),
        ("-logtostderr=false", "-logtostderr has no effect: logs go to stderr"),
    ],
)
def test_a_flag_without_effect_is_warned_of(argument: str, beginning: str) -> None:
    (warning,) = options(argument).warnings
    assert warning.startswith(beginning)


@pytest.mark.rule("VMOD-3")
def test_volumes_are_not_modified_without_access_to_storage_classes() -> None:
    narrow = ("-features=VolumeModifying=true", "-cluster-scoped=false")
    (warning,) = options(*narrow).warnings
    assert "has no effect without -cluster-permission-sc" in warning
    assert () == options(*narrow, "-cluster-permission-sc").warnings
    assert () == options(narrow[0]).warnings


@pytest.mark.parametrize("argument", ["-test-mode=false", "-logtostderr", "-features=VolumeModifying=false"])
def test_a_flag_that_equals_the_default_causes_no_warning(argument: str) -> None:
    assert () == options(argument).warnings


@pytest.mark.rule("5")
def test_flags_are_logged_in_the_form_that_users_search_for() -> None:
    given = options("-selector=a=b", "-cluster-scoped=false", "-resync-duration=1m30s", "-features=VolumeModifying=1")
    lines = list(flag_lines(given))

    assert {
        'FLAG: --selector="a=b"',
        'FLAG: --cluster-scoped="false"',
        'FLAG: --resync-duration="1m30s"',
        'FLAG: --kube-client-qps="50"',
    } <= set(lines)
    features = next(line for line in lines if "--features=" in line)
    assert ",VolumeModifying=true,VolumeReplacing=false" in features


@pytest.mark.parametrize(
    ("flag", "resource"),
    [
        ("-cluster-permission-node", NODES),
        ("-cluster-permission-pv", PERSISTENT_VOLUMES),
        ("-cluster-permission-sc", STORAGE_CLASSES),
    ],
)
@pytest.mark.rule("1.4")
def test_confined_to_a_namespace_each_cluster_scoped_resource_is_a_matter_of_its_flag(
    flag: str, resource: Resource
) -> None:
    assert {resource} == options("-cluster-scoped=false", flag).permitted
    assert resource in options(f"{flag}=false").permitted
