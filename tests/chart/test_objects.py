"""The chart's objects for values (scheduler-deployment.md 2.8, 8, 9)."""

import json
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from apis.consent import BY_CONSENT, parse_policy
from apis.crd import KINDS
from controller_manager.admission import PATH
from controller_manager.features import FeatureGates
from controller_manager.flags import Options, described, parse
from dataplane import addresses, ticdc, tiproxy
from kube.objects import Json
from kube.resources import PERSISTENT_VOLUMES, STORAGE_CLASSES
from rehearsal.rights import OF_VOLUME_MODIFYING, Right
from scheduler.options import Options as SchedulerOptions
from scheduler.options import parse_options
from tests.chart.helm import CHART, NAMESPACE, RELEASE, ROOT, Helm, arguments, one
from tests.controlplane.processes import BINARIES, require_or_reason
from tests.sql_server import certificates

MANAGER, SCHEDULER = "tidb-controller-manager", "tidb-scheduler"
WEBHOOK = f"tidb-admission-{NAMESPACE}-{RELEASE}"
PAIRS = parse_policy("a:*,b:c")
MONITORING = ROOT / "manifests" / "monitoring"

_ALL = {
    "scheduler.create": True,
    "networkPolicy.create": True,
    "flowControl.create": True,
    "controllerManager.admissionWebhook.create": True,
    "controllerManager.podDisruptionBudget.create": True,
    "scheduler.podDisruptionBudget.create": True,
    "monitoring": {name: {"create": True} for name in ("serviceMonitor", "prometheusRule", "dashboard")},
}


@pytest.fixture(scope="module")
def everything(helm: Helm) -> list[Json]:
    """All objects that the chart can create."""
    return helm.template(_ALL)


def _options(objects: list[Json]) -> Options:
    return parse(arguments(objects), {}, "")


@pytest.mark.slow
def test_the_plain_manifests_are_what_the_chart_makes(helm: Helm) -> None:
    done = subprocess.run(
        [sys.executable, "hack/helm/render.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr)


@pytest.mark.slow
def test_an_archive_of_the_chart_has_what_links_lead_to(helm: Helm, tmp_path: Path) -> None:
    helm.succeed("package", str(CHART), f"--destination={tmp_path}")
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as opened:
        files = {each.name.removeprefix("tidb-operator/") for each in opened if each.isfile()}
    shared = {
        f"{link}/{path.name}" for link in ("crds", "monitoring") for path in (ROOT / "manifests" / link).glob("*.*")
    }
    assert shared <= files
    definitions = yaml.safe_load_all(helm.succeed("show", "crds", str(archive)))
    names = {f"crds/pingcap.com_{each['spec']['names']['plural']}.yaml" for each in definitions}
    assert {path for path in files if path.startswith("crds/")} == names


@pytest.mark.rule("scheduler-deployment-9")
def test_without_values_the_flags_are_their_defaults(defaults: list[Json]) -> None:
    assert replace(Options(), tidb_discovery_image="tidb-operator-py:latest", v=2) == _options(defaults)


_VALUES: Sequence[tuple[str, object, str, object]] = [
    ("clusterScoped", False, "cluster_scoped", False),
    ("tidbBackupManagerImage", "pingcap/tidb-backup-manager:v1.6.6", "tidb_backup_manager_image", ...),
    ("operatorImage", "registry/operator:1", "tidb_discovery_image", ...),
    ("features", ["VolumeReplacing=true"], "features", FeatureGates(volume_replacing=True)),
    ("controllerManager.logLevel", 4, "v", 4),
    ("controllerManager.workers", 10, "workers", 10),
    ("controllerManager.selector", ["version!=canary", "zone=a"], "selector", "version!=canary,zone=a"),
    ("controllerManager.shards", 3, "shards", 3),
    ("controllerManager.observe", True, "observe", True),
    ("controllerManager.autoFailover", False, "auto_failover", False),
    ("controllerManager.pdFailoverPeriod", "1m", "pd_failover_period", 60.0),
    ("controllerManager.tikvFailoverPeriod", "1m30s", "tikv_failover_period", 90.0),
    ("controllerManager.tidbFailoverPeriod", "1m", "tidb_failover_period", 60.0),
    ("controllerManager.tiflashFailoverPeriod", "1m", "tiflash_failover_period", 60.0),
    ("controllerManager.dmMasterFailoverPeriod", "1m", "dm_master_failover_period", 60.0),
    ("controllerManager.dmWorkerFailoverPeriod", "1m", "dm_worker_failover_period", 60.0),
    ("controllerManager.leaderLeaseDuration", "30s", "leader_lease_duration", 30.0),
    ("controllerManager.leaderRenewDeadline", "12s", "leader_renew_deadline", 12.0),
    ("controllerManager.leaderRetryPeriod", "3s", "leader_retry_period", 3.0),
    ("controllerManager.kubeClientQPS", 7.5, "kube_client_qps", 7.5),
    ("controllerManager.kubeClientBurst", 9, "kube_client_burst", 9),
    ("controllerManager.debugAddr", "127.0.0.1:6061", "debug_addr", "127.0.0.1:6061"),
    ("controllerManager.crossNamespaceReferences", "consent", "cross_namespace_references", BY_CONSENT),
    (
        "controllerManager.crossNamespaceReferences",
        "a:*,b:c",
        "cross_namespace_references",
        parse_policy("a:*,b:c"),
    ),
    ("controllerManager.crossNamespaceReferences", "allow", "cross_namespace_references", parse_policy("allow")),
    ("controllerManager.extraArgs", ["--drain-timeout=10s"], "drain_timeout", 10.0),
]
"""A value of the chart, and the option that is it: the same value, unless another one is expected."""

_WITHOUT_VALUE = {
    "kubeconfig": "a pod has its service account",
    "resync-duration": "v1.6's chart has no value either; the comment of extraArgs shows it",
    "drain-timeout": "the pod's terminationGracePeriodSeconds is fixed, and longer",
    "metrics-addr": "the Service, the probes and the NetworkPolicy name its port",
    "admission-webhook-addr": "the Service and the NetworkPolicy name its port",
    "leader-resource-lock": "the value accepts leases alone, the default",
}
"""Flags that only `extraArgs` sets, and why."""


@pytest.mark.parametrize(("value", "given", "option", "expected"), _VALUES)
@pytest.mark.rule("scheduler-deployment-9")
def test_a_value_is_the_flag(helm: Helm, value: str, given: Any, option: str, expected: Any) -> None:
    assert (given if expected is ... else expected) == getattr(_options(helm.template({value: given})), option)


def test_each_flag_has_a_value_or_a_reason_to_have_none(helm: Helm) -> None:
    others = {"controllerManager.detectNodeFailure": True, "controllerManager.admissionWebhook.create": True}
    given = {value: given for value, given, *_ in _VALUES if value != "controllerManager.extraArgs"} | others
    flags = [argument.lstrip("-").partition("=")[0] for argument in arguments(helm.template(given))]
    assert sorted(described()) == sorted([*flags, *_WITHOUT_VALUE])


@pytest.mark.rule("scheduler-deployment-9")
def test_hard_recovery_is_set_with_the_detection_of_lost_nodes(helm: Helm) -> None:
    period = {"controllerManager.podHardRecoveryPeriod": "1h"}
    assert 86400.0 == _options(helm.template(period)).pod_hard_recovery_period
    found = _options(helm.template({**period, "controllerManager.detectNodeFailure": True}))
    assert (True, 3600.0) == (found.detect_node_failure, found.pod_hard_recovery_period)


@pytest.mark.parametrize("suffix", [False, True])
@pytest.mark.rule("scheduler-deployment-9")
def test_two_releases_in_one_namespace_have_names_and_a_lease_of_their_own(helm: Helm, suffix: bool) -> None:
    objects = helm.template({**_ALL, "appendReleaseSuffix": suffix})
    end = f"-{RELEASE}" if suffix else ""
    pod = one(objects, "Deployment", MANAGER + end)["spec"]["template"]["spec"]
    assert MANAGER + end == pod["serviceAccountName"]
    assert suffix == ({"name": "HELM_RELEASE", "value": RELEASE} in pod["containers"][0]["env"])
    shared = {"kube-system"} | {None}
    own = [each["metadata"]["name"] for each in objects if each["metadata"].get("namespace") not in shared]
    assert {True} == {name.startswith(f"{RELEASE}:") or end in name for name in own}


_WEBHOOK = "controllerManager.admissionWebhook.create"


def test_the_admission_webhook_asks_the_controller_manager_about_every_kind(helm: Helm) -> None:
    objects = helm.template({_WEBHOOK: True, "networkPolicy.create": True})
    configuration, service = one(objects, "ValidatingWebhookConfiguration"), one(objects, "Service", WEBHOOK)
    (webhook,) = configuration["webhooks"]
    (rule,) = webhook["rules"]
    assert {each.plural for each in KINDS} == set(rule["resources"])
    assert ("Ignore", 3, "None", None) == (
        webhook["failurePolicy"],
        webhook["timeoutSeconds"],
        webhook["sideEffects"],
        webhook.get("namespaceSelector"),
    )
    assert {"name": WEBHOOK, "namespace": NAMESPACE, "path": PATH} == webhook["clientConfig"]["service"]
    assert {WEBHOOK} == {configuration["metadata"]["name"], _options(objects).admission_webhook}
    pod = one(objects, "Deployment", MANAGER)["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    port = next(each for each in pod["spec"]["containers"][0]["ports"] if each["name"] == "admission")["containerPort"]
    assert f":{port}" == _options(objects).admission_webhook_addr
    assert {"ports": [{"port": port}]} in one(objects, "NetworkPolicy")["spec"]["ingress"]


def test_the_admission_webhook_judges_only_the_chosen_namespaces(helm: Helm) -> None:
    chosen = {"matchLabels": {"team": "a"}}

    def selector(**values: Any) -> Json:
        objects = helm.template({_WEBHOOK: True, **values})
        found: Json = one(objects, "ValidatingWebhookConfiguration")["webhooks"][0]["namespaceSelector"]
        return found

    assert chosen == selector(**{"controllerManager.admissionWebhook.namespaceSelector": chosen})
    assert {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}} == selector(clusterScoped=False)


def test_the_right_to_grant_any_user_is_granted_on_openshift_alone(helm: Helm, defaults: list[Json]) -> None:
    def granted(objects: list[Json]) -> list[Json]:
        rules = (rule for each in objects if each["kind"] == "ClusterRole" for rule in each["rules"])
        return [rule for rule in rules if "security.openshift.io" in rule["apiGroups"]]

    (rule,) = granted(helm.template({}, "--api-versions=security.openshift.io/v1"))
    assert (["anyuid"], ["use"], []) == (rule["resourceNames"], rule["verbs"], granted(defaults))


def test_without_the_admission_webhook_no_right_about_webhooks_is_granted(helm: Helm, defaults: list[Json]) -> None:
    def granted(objects: list[Json]) -> list[tuple[list[str], list[str]]]:
        rules = [rule for each in objects for rule in each.get("rules") or () if each["kind"].endswith("Role")]
        return [
            (rule["resourceNames"], rule["verbs"])
            for rule in rules
            if "validatingwebhookconfigurations" in rule["resources"]
        ]

    assert [] == granted(defaults)
    assert [([WEBHOOK], ["get", "patch"])] == granted(helm.template({_WEBHOOK: True}))


@pytest.mark.rule("scheduler-deployment-2.8")
def test_the_profile_is_called_as_the_scheduler(helm: Helm) -> None:
    objects = helm.template({"scheduler.create": True, "scheduler.schedulerName": "mine", "appendReleaseSuffix": True})
    name = f"mine-{RELEASE}"
    told = yaml.safe_load(one(objects, "ConfigMap", name)["data"]["scheduler.yaml"])
    assert "kubescheduler.config.k8s.io/v1" == told["apiVersion"]
    assert [{"schedulerName": name}] == told["profiles"]
    assert name == told["leaderElection"]["resourceName"]
    leases = one(objects, "Role", f"{RELEASE}:mine-own")["rules"][1]
    assert (["leases"], [name]) == (leases["resources"], leases["resourceNames"])
    (extender,) = told["extenders"]
    assert f":{parse_options(arguments(objects, name), {}, '').port}/" in extender["urlPrefix"]


def test_the_extender_and_its_scheduler_show_each_other_the_certificate_of_a_secret(helm: Helm) -> None:
    secret = {"scheduler.extenderTLSSecret": "extender", "scheduler.extenderServerName": "here"}
    objects = helm.template({"scheduler.create": True, **secret})
    (extender,) = yaml.safe_load(one(objects, "ConfigMap", SCHEDULER)["data"]["scheduler.yaml"])["extenders"]
    options = parse_options(arguments(objects, SCHEDULER), {}, "")
    assert ("https://127.0.0.1:10262/scheduler", True) == (extender["urlPrefix"], extender["enableHTTPS"])
    assert {
        "serverName": "here",
        "caFile": options.client_ca_file,
        "certFile": options.tls_cert_file,
        "keyFile": options.tls_private_key_file,
    } == extender["tlsConfig"]
    pod = one(objects, "Deployment", SCHEDULER)["spec"]["template"]["spec"]
    assert {"name": "extender-tls", "secret": {"secretName": "extender"}} in pod["volumes"]
    directory = str(Path(options.tls_cert_file).parent)
    mounted = [[each["mountPath"] for each in container["volumeMounts"]] for container in pod["containers"]]
    assert [True, True] == [directory in paths for paths in mounted]


@pytest.mark.controlplane
@pytest.mark.parametrize("secret", ["", "extender"])
@pytest.mark.parametrize("kubernetes", ["v1.25.16", "v1.33.4"])
@pytest.mark.rule("scheduler-deployment-2.8")
def test_a_real_scheduler_takes_its_configuration(helm: Helm, kubernetes: str, secret: str, tmp_path: Path) -> None:
    if reason := require_or_reason():
        pytest.skip(reason)
    values = {"scheduler.create": True, "scheduler.extenderTLSSecret": secret}
    objects = helm.template(values, f"--kube-version={kubernetes}")
    given, taken = tmp_path / "given.yaml", tmp_path / "taken.yaml"
    # it reads the certificate, so there is one
    certificates(tmp_path / "tls")
    text = one(objects, "ConfigMap", SCHEDULER)["data"]["scheduler.yaml"]
    given.write_text(text.replace("/etc/extender-tls", str(tmp_path / "tls")))
    # it prints the flags that it understands, and ends
    command = [
        str(BINARIES / "kube-scheduler"),
        f"--config={given}",
        f"--write-config-to={taken}",
        "--master=localhost",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert 0 == done.returncode, done.stderr
    found = yaml.safe_load(taken.read_text())
    (told,) = yaml.safe_load(given.read_text())["extenders"]
    assert told.items() <= found["extenders"][0].items()
    assert [SCHEDULER] == [each["schedulerName"] for each in found["profiles"]]


@pytest.mark.parametrize(("kubernetes", "version"), [("v1.24.17", "v1beta3"), ("v1.31.2-gke.100+abc", "v1")])
@pytest.mark.rule("scheduler-deployment-2.8")
def test_clusters_use_the_scheduler_of_the_chart(helm: Helm, kubernetes: str, version: str) -> None:
    objects = helm.template({"scheduler.create": True}, f"--kube-version={kubernetes}")
    told = yaml.safe_load(one(objects, "ConfigMap", SCHEDULER)["data"]["scheduler.yaml"])
    assert f"kubescheduler.config.k8s.io/{version}" == told["apiVersion"]
    image = one(objects, "Deployment", SCHEDULER)["spec"]["template"]["spec"]["containers"][0]["image"]
    assert f"registry.k8s.io/kube-scheduler:{kubernetes.partition('-')[0]}" == image


def test_the_scheduler_restarts_with_another_configuration_and_knows_the_features(helm: Helm) -> None:
    def made(**values: Any) -> list[Json]:
        return helm.template({"scheduler.create": True, **values})

    def annotations(objects: list[Json], name: str) -> Json:
        found: Json = one(objects, "Deployment", name)["spec"]["template"]["metadata"]["annotations"]
        return found

    objects = made(features=["StableScheduling=false"])
    options = parse_options(arguments(objects, SCHEDULER), {}, "")
    assert replace(SchedulerOptions(), features=FeatureGates(stable_scheduling=False), v=2) == options
    other = made(**{"scheduler.schedulerName": "mine"})
    digest = "tidb.pingcap.com/scheduler-config-digest"
    assert annotations(objects, SCHEDULER)[digest] != annotations(other, "mine")[digest]


@pytest.mark.rule("8.2")
def test_a_namespaced_release_has_rights_there_alone(helm: Helm) -> None:
    permissions = dict.fromkeys(("nodes", "persistentvolumes", "storageclasses"), False)
    values = {"clusterScoped": False, "controllerManager.clusterPermissions": permissions}
    objects = helm.template(values)
    assert [] == [each["metadata"]["name"] for each in objects if each["kind"].startswith("ClusterRole")]
    options = _options(objects)
    assert frozenset() == options.permitted
    granted = helm.template({"clusterScoped": False, "controllerManager.clusterPermissions.nodes": False})
    rules = one(granted, "ClusterRole")["rules"]
    assert ["persistentvolumes", "storageclasses"] == [each for rule in rules for each in rule["resources"]]
    assert {PERSISTENT_VOLUMES, STORAGE_CLASSES} == _options(granted).permitted


@pytest.mark.parametrize("scoped", [True, False])
@pytest.mark.rule("VMOD-1")
def test_the_feature_volume_modifying_brings_its_rights(helm: Helm, scoped: bool) -> None:
    def granted(*features: str) -> set[Right]:
        objects = helm.template({"clusterScoped": scoped, "features": list(features)})
        rules = (rule for each in objects if each["kind"] == "ClusterRole" for rule in each["rules"])
        return {Right(verb, rule["apiGroups"][0], rule["resources"][0]) for rule in rules for verb in rule["verbs"]}

    assert OF_VOLUME_MODIFYING == granted("VolumeModifying=true") - granted()


@pytest.mark.rule("8.3")
def test_a_namespaced_scheduler_sees_nodes_and_its_namespace(helm: Helm) -> None:
    objects = helm.template({"clusterScoped": False, "scheduler.create": True})
    name = f"{RELEASE}:{SCHEDULER}"
    assert [["nodes"]] == [rule["resources"] for rule in one(objects, "ClusterRole", name)["rules"]]
    wide = one(helm.template({"scheduler.create": True}), "ClusterRole", name)["rules"]
    rules = one(objects, "Role", f"{name}-own")["rules"]
    assert [rule for rule in wide if rule["resources"] != ["nodes"]] == rules[2:]


def test_the_administrator_can_create_the_rights(helm: Helm) -> None:
    kinds = {each["kind"] for each in helm.template({**_ALL, "rbac.create": False})}
    assert not kinds & {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}


def test_each_half_can_be_left_out(helm: Helm) -> None:
    objects = helm.template({**_ALL, "controllerManager.create": False, "monitoring": {}})
    components = {each["metadata"]["labels"]["app.kubernetes.io/component"] for each in objects}
    assert {"scheduler"} == components


@pytest.mark.parametrize(("component", "prefix"), [(MANAGER, "controllerManager"), (SCHEDULER, "scheduler")])
def test_pods_are_placed_according_to_the_values(helm: Helm, component: str, prefix: str) -> None:
    placement = {
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    }
    values = {f"{prefix}.{name}": value for name, value in placement.items()}
    more = {"scheduler.create": True, f"{prefix}.replicas": 3, "imagePullSecrets": [{"name": "registry"}]}
    deployment = one(helm.template({**values, **more}), "Deployment", component)["spec"]
    pod = deployment["template"]["spec"]
    assert placement.items() <= pod.items()
    assert (3, [{"name": "registry"}]) == (deployment["replicas"], pod["imagePullSecrets"])


def test_a_token_may_be_a_projected_volume(helm: Helm) -> None:
    """As where a policy forbids the usual way."""
    pod = one(helm.template({"controllerManager.automountServiceAccountToken": False}), "Deployment")
    spec = pod["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    (mount,) = spec["containers"][0]["volumeMounts"]
    assert "/var/run/secrets/kubernetes.io/serviceaccount" == mount["mountPath"]
    paths = {"token"} | {"ca.crt"} | {"namespace"}
    assert paths <= set(json.dumps(spec["volumes"]).replace('"', " ").split())


def test_selectors_of_pods_select_the_charts_pods(everything: list[Json]) -> None:
    for name in (MANAGER, SCHEDULER):
        own = one(everything, "Deployment", name)["spec"]["template"]["metadata"]["labels"].items()
        budget = one(everything, "PodDisruptionBudget", name)["spec"]
        assert budget["selector"]["matchLabels"].items() <= own
        assert 1 == budget["maxUnavailable"]
    pods = one(everything, "Deployment", MANAGER)["spec"]["template"]["metadata"]["labels"].items()
    service = one(everything, "Service", MANAGER)
    assert service["spec"]["selector"].items() <= pods
    monitor = one(everything, "ServiceMonitor")["spec"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert [service["spec"]["ports"][0]["name"]] == [each["port"] for each in monitor["endpoints"]]
    assert monitor["endpoints"][0]["honorLabels"]
    assert one(everything, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"].items() <= pods


def test_rules_and_dashboard_equal_the_manifests(everything: list[Json]) -> None:
    assert yaml.safe_load((MONITORING / "alerts.yaml").read_text()) == one(everything, "PrometheusRule")["spec"]
    dashboard = one(everything, "ConfigMap", f"{MANAGER}-dashboard")
    assert json.loads((MONITORING / "dashboard.json").read_text()) == json.loads(*dashboard["data"].values())
    assert "1" == dashboard["metadata"]["labels"]["grafana_dashboard"]


def test_the_network_policy_allows_the_operators_requests(everything: list[Json]) -> None:
    egress = one(everything, "NetworkPolicy")["spec"]["egress"]
    ports = {port["port"] for rule in egress for port in rule["ports"]}
    asked = {
        addresses.PD_CLIENT_PORT,
        addresses.TIKV_SERVER_PORT,
        addresses.TIKV_STATUS_PORT,
        addresses.TIFLASH_STATUS_PORT,
        addresses.TIDB_STATUS_PORT,
        addresses.TIDB_SERVER_PORT,
        addresses.PUMP_PORT,
        addresses.DM_MASTER_PORT,
        ticdc.PORT,
        tiproxy.API_PORT,
    }
    assert asked | {53, 443, 6443} == ports


def test_the_network_policy_allows_the_users_additional_ports(helm: Helm) -> None:
    objects = helm.template({"networkPolicy": {"create": True, "extraPorts": [3128]}})
    assert {"ports": [{"port": 3128}]} == one(objects, "NetworkPolicy")["spec"]["egress"][-1]


def test_seats_at_the_api_server_are_for_the_manager(helm: Helm) -> None:
    objects = helm.template({"flowControl": {"create": True, "shares": 7}, "appendReleaseSuffix": True})
    level = one(objects, "PriorityLevelConfiguration")
    assert 7 == level["spec"]["limited"]["nominalConcurrencyShares"]
    name = level["metadata"]["name"]
    requests, leases = one(objects, "FlowSchema", name)["spec"], one(objects, "FlowSchema", f"{name}-leases")["spec"]
    assert name == requests["priorityLevelConfiguration"]["name"]
    account = {"name": one(objects, "ServiceAccount")["metadata"]["name"], "namespace": NAMESPACE}
    for rule in (*requests["rules"], *leases["rules"]):
        assert [account] == [each["serviceAccount"] for each in rule["subjects"]]
    granted = one(objects, "Role", f"{RELEASE}:{MANAGER}-leader")["rules"][0]["verbs"]
    assert set() == set(leases["rules"][0]["resourceRules"][0]["verbs"]) - set(granted)


def test_seats_need_a_kubernetes_that_knows_them(helm: Helm) -> None:
    done = helm.run("template", str(CHART), "--set=flowControl.create=true", "--kube-version=v1.28.3")
    assert "flowControl.create: true: needs Kubernetes 1.29, this is v1.28.3; leave it out" in done.stderr


def test_the_test_pod_may_scrape_where_the_monitor_may(helm: Helm) -> None:
    peer = {"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}
    objects = helm.template({"networkPolicy": {"create": True, "from": [peer]}})
    (rule,) = one(objects, "NetworkPolicy")["spec"]["ingress"]
    test = one(objects, "Pod")
    assert peer == rule["from"][0]
    assert rule["from"][1]["podSelector"]["matchLabels"].items() <= test["metadata"]["labels"].items()


@pytest.mark.parametrize(("observe", "shards", "leases"), [(False, 1, 1), (True, 3, 0), (False, 3, 3)])
def test_the_test_asks_the_service_with_our_own_image(helm: Helm, observe: bool, shards: int, leases: int) -> None:
    objects = helm.template({"controllerManager.observe": observe, "controllerManager.shards": shards})
    pod = one(objects, "Pod")
    (container,) = pod["spec"]["containers"]
    manager = one(objects, "Deployment", MANAGER)["spec"]["template"]["spec"]
    assert manager["containers"][0]["image"] == container["image"]
    assert manager["securityContext"] == pod["spec"]["securityContext"]
    service = one(objects, "Service")["metadata"]["name"]
    assert [f"{service}.{NAMESPACE}:6060", f"--leases={leases}"] == container["args"]
    assert container["command"][0].rpartition("/")[2] in (ROOT / "Dockerfile").read_text()


@pytest.mark.rule("scheduler-deployment-9")
def test_the_controller_of_advanced_stateful_sets_has_the_names_and_the_image_of_v1_6(helm: Helm) -> None:
    assert not [each for each in helm.template({}) if "advanced" in each["metadata"]["name"]]
    name = "advanced-statefulset-controller"
    made = [each for each in helm.template({"advancedStatefulset.create": True}) if each["metadata"]["name"] == name]
    kinds = ["ClusterRole", "ClusterRoleBinding", "Deployment", "Role", "RoleBinding", "ServiceAccount"]
    assert kinds == sorted(each["kind"] for each in made)
    deployment = one(made, "Deployment")["spec"]
    assert "pingcap/advanced-statefulset:v0.7.0" == deployment["template"]["spec"]["containers"][0]["image"]
    labels = {"app.kubernetes.io/name": "tidb-operator", "app.kubernetes.io/instance": RELEASE}
    assert labels | {"app.kubernetes.io/component": name} == deployment["selector"]["matchLabels"]


def test_the_bindings_of_that_controller_name_the_account_that_it_has(helm: Helm) -> None:
    made = helm.template({"advancedStatefulset.create": True, "advancedStatefulset.serviceAccount": "other"})
    bindings = [one(made, kind, "advanced-statefulset-controller") for kind in ("ClusterRoleBinding", "RoleBinding")]
    pod = one(made, "Deployment", "advanced-statefulset-controller")["spec"]["template"]["spec"]
    accounts = {each["subjects"][0]["name"] for each in bindings} | {pod["serviceAccountName"]}
    assert {"other"} == accounts
