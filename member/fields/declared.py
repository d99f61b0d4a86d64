"""The fields of specs, and declarations that objects do not show: run-time effects, no effect, tests of fields.

Keys are globs of paths (`last_fit`). Tests are named from `tests/`. A field that shows in no object and is not declared
here is a defect, which `cli.fields.table` reports.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple, TypeVar

from apis.components import component_types
from apis.crd import KINDS, TIDB_CLUSTER, definition
from kube.objects import Json

ITEM = "[]"
"""The suffix of a list whose items have fields, as in `pdms[].replicas`."""

_Value = TypeVar("_Value")


@cache
def fields() -> Mapping[str, Json]:
    """Each field that has no fields below it, by its path in the spec, with its schema: `tikv.storageVolumes[].name`.

    Trees of Kubernetes, such as `affinity`, are one field; of `requests`, the size of a data volume is one more.
    """
    found = fields_of(TIDB_CLUSTER.name)
    sizes = (f"{row.name}.requests.storage" for row in component_types() if row.data_volume)
    return {**found, **{path: {"type": "string"} for path in sizes}}


@cache
def fields_of(kind: str) -> Mapping[str, Json]:
    """As `fields`, for a kind by its name, without the sizes of data volumes."""
    found = next(each for each in KINDS if each.name == kind)
    schema = definition(found)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return dict(leaves("", schema["properties"]["spec"]))


def leaves(path: str, node: Json) -> Iterator[tuple[str, Json]]:
    """The fields below a path, each with its schema, that have no fields below them."""
    items = node.get("items") or {}
    if "properties" in items:
        yield from leaves(path + ITEM, items)
    elif "properties" not in node:
        yield path, node
    for name, inner in node.get("properties", {}).items():
        yield from leaves(f"{path}.{name}" if path else name, inner)


def fits(path: str, glob: str) -> bool:
    """True if a glob matches a field; `[]` in it is literal."""
    return fnmatchcase(path.replace(ITEM, ""), glob.replace(ITEM, ""))


def last_fit(path: str, table: Mapping[str, _Value]) -> _Value | None:
    """The value of the last glob in a table that matches a field; None if none does."""
    return next((effect for glob, effect in reversed(list(table.items())) if fits(path, glob)), None)


class AtRunTime(NamedTuple):
    """The run-time effect of a field, besides objects, and the test that shows it."""

    says: str
    test: str


_SYNCS = "controllers/tidbcluster"

AT_RUN_TIME: Mapping[str, AtRunTime] = {
    "*suspendAction.suspendStatefulSet": AtRunTime(
        "the StatefulSet is deleted, and all else kept, until it is taken back",
        f"{_SYNCS}/test_suspend.py::test_one_component_is_suspended_while_the_others_serve",
    ),
    "*.replicas": AtRunTime(
        "scaling, one pod or `scalePolicy` at a time, data first",
        f"{_SYNCS}/test_scaling.py::test_tikv_grows_by_its_parallelism",
    ),
    "*.maxFailoverCount": AtRunTime(
        "how many lost members are replaced at most; 0: none",
        f"{_SYNCS}/test_failover.py::test_no_more_than_the_limit_is_replaced",
    ),
    "*.recoverFailover": AtRunTime(
        "substitutes go once what was lost is back",
        f"{_SYNCS}/test_tiflash.py::test_a_lost_store_gets_a_substitute_until_the_user_says_that_it_is_back",
    ),
    "*.failover.recoverByUID": AtRunTime(
        "substitutes of that failover go once what was lost is back",
        f"{_SYNCS}/test_failover.py::test_a_lost_store_is_replaced_and_given_back_on_command",
    ),
    "*.spareVolReplaceReplicas": AtRunTime(
        "further pods while volumes are replaced",
        "apis/test_ordinals.py::test_substitutes_and_spares_are_added",
    ),
    "*.scalePolicy.scaleInParallelism": AtRunTime(
        "how many pods go at a time",
        f"{_SYNCS}/test_scaling_in.py::test_tikv_shrinks_as_its_stores_become_tombstone",
    ),
    "*.scalePolicy.scaleOutParallelism": AtRunTime(
        "how many pods come at a time",
        f"{_SYNCS}/test_scaling.py::test_tikv_grows_by_its_parallelism",
    ),
    "*.requests.storage": AtRunTime(
        "volumes grow, or are replaced",
        f"{_SYNCS}/test_volume_growth.py::test_the_volumes_of_all_components_grow_at_once",
    ),
    "*storageVolumes[].storageSize": AtRunTime(
        "volumes grow, or are replaced",
        f"{_SYNCS}/test_volume_growth.py::test_each_volume_of_a_pod_has_a_size_of_its_own",
    ),
    "*storageClassName": AtRunTime(
        "with `enablePVCReplace`, volumes of PD, TiKV, TiDB and TiFlash are replaced; else refused",
        f"{_SYNCS}/test_volume_replacement.py::test_pd_members_move_to_another_class",
    ),
    "*volumeAttributesClassName": AtRunTime(
        "each claim requests it",
        f"{_SYNCS}/test_volume_growth.py::test_each_volume_and_each_component_has_a_class_of_its_own",
    ),
    "tikv.evictLeaderTimeout": AtRunTime(
        "how long a restart waits for leaders to move away",
        f"{_SYNCS}/test_upgrade.py::test_a_store_gets_two_thirds_of_its_leaders_back_before_the_next_one_goes",
    ),
    "tikv.waitLeaderTransferBackTimeout": AtRunTime(
        "how long the next restart waits for leaders to return",
        f"{_SYNCS}/test_upgrade.py::test_a_store_gets_two_thirds_of_its_leaders_back_before_the_next_one_goes",
    ),
    "tikv.storeLabels": AtRunTime(
        "PD gets these labels of each store's node",
        "meta/test_locations.py::test_sends_stores_and_servers_their_location_once",
    ),
    "ticdc.gracefulShutdownTimeout": AtRunTime(
        "how long a capture may take to hand its tables over",
        f"{_SYNCS}/test_ticdc.py::test_after_the_timeout_the_pod_goes_anyway_and_an_event_reports_it",
    ),
    "tici.changefeed.enable": AtRunTime(
        "the operator asks TiCDC for the changefeed; false removes none",
        f"{_SYNCS}/test_tici.py::test_without_the_changefeed_the_operator_asks_ticdc_for_nothing",
    ),
    "tici.changefeed.*I*": AtRunTime(
        "the sink and the name of the changefeed",
        f"{_SYNCS}/test_tici.py::test_a_changed_sink_is_sent_to_a_paused_changefeed_which_continues",
    ),
    "tidb.initializer.createPassword": AtRunTime(
        "a Secret `<tc>-init` with a password, which root gets",
        f"{_SYNCS}/test_password.py::test_root_gets_the_secrets_password_and_no_log_or_event_shows_it",
    ),
    "tidb.binlogEnabled": AtRunTime(
        "TiDB waits for a Pump that is online",
        f"{_SYNCS}/test_pump.py::test_all_nodes_stay_while_tidb_writes_binlogs",
    ),
    "clusterDomain": AtRunTime(
        "refused on a cluster that has bootstrapped",
        f"{_SYNCS}/test_addresses.py::test_the_domain_of_a_running_cluster_is_not_changed",
    ),
    "tlsCluster.enabled": AtRunTime(
        "the operator speaks TLS; switched on a running cluster where nothing is cut off",
        f"{_SYNCS}/test_tls.py::test_tls_is_switched_where_a_single_pd_runs_and_stores_are_suspended",
    ),
    "pdAddresses": AtRunTime(
        "the first PD joins there",
        "discovery/test_new.py::test_given_addresses_are_joined_by_the_first_pod_before_the_others",
    ),
    **dict.fromkeys(
        ("tidb.serverLabels", "tiproxy.serverLabels"),
        AtRunTime(
            "each server gets these labels, under the location of its node",
            "meta/test_locations.py::test_servers_get_the_labels_of_the_spec_without_a_restart",
        ),
    ),
    "paused": AtRunTime(
        "no changes are made; the status is kept up to date",
        f"{_SYNCS}/test_housekeeping.py::test_while_paused_nothing_but_labels_is_written",
    ),
    "recoveryMode": AtRunTime(
        "TiFlash, TiKV and TiDB wait for a restore",
        f"{_SYNCS}/test_refusals.py::test_recovery_mode_holds_tikv_until_its_volumes_are_there_and_tidb_to_the_end",
    ),
    "pvReclaimPolicy": AtRunTime(
        "the policy of every volume",
        f"{_SYNCS}/test_housekeeping.py::test_volumes_get_the_reclaim_policy_of_the_spec",
    ),
    "enablePVReclaim": AtRunTime(
        "claims that a scale-in left behind are deleted",
        f"{_SYNCS}/test_housekeeping.py::test_deletes_a_claim_left_behind_with_its_volume_on_request",
    ),
    "enablePVCReplace": AtRunTime(
        "volumes that cannot be changed in place are replaced, pod by pod",
        f"{_SYNCS}/test_volume_replacement.py::test_the_remaining_volumes_stay_after_the_change_is_reverted",
    ),
}


REMOVE = "remove it"


class NoEffect(NamedTuple):
    """Why a field has no effect, and what to write instead."""

    because: str
    instead: str = REMOVE


_NO_STATEFUL_SET = NoEffect("Discovery is a Deployment without configuration")
_NO_PROBE = NoEffect("its readiness follows its container")
_ALWAYS_TCP = NoEffect("its port is probed")
_OPERATORS_IMAGE = NoEffect("its image is the operator's", "set the operator's flag `-tidb-discovery-image`")
_NOT_IN_SERVICE = NoEffect("PD's Service does not have it")
_PORT_OF_PD = NoEffect("clients of PD know its port")
_IN_PLACE = NoEffect("its configuration is always changed in place")

NO_EFFECT: Mapping[str, NoEffect] = {
    "discovery.image": _OPERATORS_IMAGE,
    "discovery.version": _OPERATORS_IMAGE,
    "discovery.configUpdateStrategy": _NO_STATEFUL_SET,
    "discovery.statefulSetUpdateStrategy": _NO_STATEFUL_SET,
    "discovery.podManagementPolicy": _NO_STATEFUL_SET,
    "discovery.suspendAction.suspendStatefulSet": _NO_STATEFUL_SET,
    "discovery.readinessProbe.type": _ALWAYS_TCP,
    "discovery.livenessProbe.type": _ALWAYS_TCP,
    "pd.readinessProbe.type": _ALWAYS_TCP,
    "tikv.readinessProbe.type": _ALWAYS_TCP,
    "pdms[].readinessProbe.*": _NO_PROBE,
    "tiflash.readinessProbe.*": _NO_PROBE,
    "ticdc.readinessProbe.*": _NO_PROBE,
    "tici.*.readinessProbe.type": _ALWAYS_TCP,
    "tici.reader.*eartbeat*": NoEffect(
        "v1.7 does not pass it to TiFlash either", "set it in spec.tiflash.config.config"
    ),
    "pump.readinessProbe.*": _NO_PROBE,
    **{f"{name}.service.port": _PORT_OF_PD for name in ("pd", "pdms[]")},
    **{f"{name}.service.loadBalancerSourceRanges": _NOT_IN_SERVICE for name in ("pd", "pdms[]")},
    **{f"{name}.service.loadBalancerClass": _NOT_IN_SERVICE for name in ("pd", "pdms[]")},
    "pdms[].maxFailoverCount": NoEffect("microservices keep no data, and Kubernetes replaces their pods"),
    "pdms[].tlsClientSecretName": NoEffect("microservices have no dashboard"),
    "pdms[].startUpScriptVersion": NoEffect("they have one script"),
    "pdms[].startTimeout": NoEffect("`spec.pd.startTimeout` counts", "set spec.pd.startTimeout"),
    "tiproxy.configUpdateStrategy": _IN_PLACE,
    "tidb.customizedStartupProbe.initialDelaySeconds": NoEffect("the probe begins at once"),
    "tidb.customizedStartupProbe.successThreshold": NoEffect("Kubernetes takes only 1"),
}
"""The fields without an effect, in this operator and in v1.6. A glob matches no field with an effect."""

_POD = "member/objects/test_pod.py"
_SERVICES = "member/objects/test_services.py"
_SET = "member/objects/test_stateful_set.py"
_TIDB = "member/test_tidb.py"
_TIKV = "member/test_tikv.py"
_SCRIPTS = "member/startscript"
_PD_SCRIPT = f"{_SCRIPTS}/test_pd_script.py"
_TIKV_AND_TIDB = f"{_SCRIPTS}/test_tikv_and_tidb_scripts.py"
_TIPROXY = "member/test_tiproxy.py"

TESTS: Mapping[str, str] = {
    "version": "apis/test_images.py::test_image_of_a_component",
    "*.version": "apis/test_images.py::test_image_of_a_component",
    "*.baseImage": "apis/test_images.py::test_image_of_a_component",
    "*.image": "apis/test_images.py::test_image_of_a_component",
    "*imagePullPolicy": "apis/test_accessor.py::test_component_replaces_cluster",
    "*.storageVolumes[].*": f"{_SET}::test_claims_carry_name_mode_size_and_classes_only",
    "*imagePullSecrets": f"{_POD}::test_a_components_setting_replaces_the_clusters",
    "*affinity": f"{_POD}::test_a_components_setting_replaces_the_clusters",
    "*priorityClassName": f"{_POD}::test_a_components_setting_replaces_the_clusters",
    "*schedulerName": f"{_POD}::test_a_components_setting_replaces_the_clusters",
    "*dnsConfig": f"{_POD}::test_a_components_setting_replaces_the_clusters",
    "*dnsPolicy": f"{_POD}::test_a_components_setting_replaces_the_clusters",
    "*tolerations": f"{_POD}::test_a_components_setting_replaces_the_clusters",
    "*hostNetwork": f"{_POD}::test_host_network_changes_the_dns_policy_and_names_the_pod",
    "*odSecurityContext": f"{_POD}::test_sysctls_move_into_a_privileged_init_container",
    "*nodeSelector": f"{_POD}::test_node_selectors_merge_by_key",
    "*.labels": f"{_POD}::test_base_labels_win_over_the_users",
    "labels": f"{_POD}::test_base_labels_win_over_the_users",
    "*.annotations": f"{_POD}::test_user_annotations_win_over_the_scrape_hints",
    "annotations": f"{_POD}::test_user_annotations_win_over_the_scrape_hints",
    "*.terminationGracePeriodSeconds": f"{_POD}::test_component_only_fields_are_copied",
    "*.automountServiceAccountToken": f"{_POD}::test_component_only_fields_are_copied",
    "*serviceAccount": f"{_POD}::test_component_only_fields_are_copied",
    "*.env": f"{_POD}::test_builtin_variables_win_and_storage_is_no_container_resource",
    "*.envFrom": f"{_POD}::test_builtin_variables_win_and_storage_is_no_container_resource",
    "*.requests": f"{_POD}::test_builtin_variables_win_and_storage_is_no_container_resource",
    "*.limits": f"{_POD}::test_builtin_variables_win_and_storage_is_no_container_resource",
    "*topologySpreadConstraints*": f"{_POD}::test_spread_constraints_select_the_instance",
    "*.initContainers": f"{_POD}::test_user_containers_and_volumes_come_after_the_generated_ones",
    "*.additional*": f"{_POD}::test_user_containers_and_volumes_come_after_the_generated_ones",
    "*podManagementPolicy": f"{_SET}::test_pod_management_policy",
    "*statefulSetUpdateStrategy": f"{_SET}::test_on_delete_is_the_users_wish",
    "*configUpdateStrategy": "apis/test_accessor.py::test_empty_list_and_empty_strategy_of_a_component",
    "helper.*": "apis/test_images.py::test_helper_image_falls_back_to_the_slow_log_tailer",
    "preferIPv6": f"{_SERVICES}::test_preferring_ipv6_makes_every_service_dual_stack",
    "services*": f"{_SERVICES}::test_type_of_the_pd_service",
    "pd.service.*": f"{_SERVICES}::test_options_of_the_pd_service",
    "pdms[].service.*": (
        "member/test_pdms.py::test_the_service_is_as_wished_and_its_type_may_come_from_the_deprecated_list"
    ),
    "tidb.service.*": f"{_SERVICES}::test_ports_of_the_tidb_service_in_order",
    "tidb.service.loadBalancer*": f"{_SERVICES}::test_load_balancer_fields_only_for_load_balancers",
    "enableDynamicConfiguration": (
        f"{_TIKV_AND_TIDB}::test_status_addresses_are_advertised_with_dynamic_configuration"
    ),
    "acrossK8s": f"{_TIKV_AND_TIDB}::test_across_kubernetes_tikv_asks_discovery",
    "cluster.*": f"{_TIKV_AND_TIDB}::test_where_pd_is",
    "startScriptVersion": f"{_SCRIPTS}/test_recorded_options.py::test_other_texts_have_other_options",
    "startScriptV2FeatureFlags": f"{_PD_SCRIPT}::test_no_wait_dns",
    "timezone": "member/test_ticdc.py::test_the_time_zone",
    "tlsCluster.enableDiscoveryMTLS": f"{_PD_SCRIPT}::test_asks_discovery_with_certificates_under_mtls",
    "discovery.*Probe.*": "member/test_discovery.py::test_probes_only_when_wished_and_only_with_given_times",
    "pd.readinessProbe.*": "member/test_pd.py::test_readiness_only_when_wished",
    "tikv.readinessProbe.*": f"{_TIKV}::test_readiness_only_when_wished",
    "tidb.readinessProbe.*": f"{_TIDB}::test_readiness",
    "pd.mode": f"{_PD_SCRIPT}::test_pd_as_an_api_server_has_a_v2_script",
    "pd.startTimeout": f"{_PD_SCRIPT}::test_dns_that_never_answers_ends_the_script",
    "pd.startUpScriptVersion": f"{_PD_SCRIPT}::test_dig_must_print_an_address",
    "pd.initWaitTime": f"{_PD_SCRIPT}::test_the_initial_wait_is_a_number_of_seconds",
    "pd.dataSubDir": f"{_PD_SCRIPT}::test_data_in_a_sub_directory",
    "pd.tlsClientSecretName": "member/test_pd.py::test_the_dashboards_secret_can_be_named",
    "pd.enableDashboardInternalProxy": "member/test_pd.py::test_keys_that_the_operator_sets",
    "pd.mountClusterClientSecret": "member/test_pd.py::test_certificates_in_order_between_data_and_user_mounts",
    "pdms[].mountClusterClientSecret": "member/test_pdms.py::test_mounts_and_volumes_in_order",
    "tikv.mountClusterClientSecret": f"{_TIKV}::test_mounts_in_order",
    "tikv.dataSubDir": f"{_TIKV_AND_TIDB}::test_tikv_keeps_data_in_a_sub_directory",
    "tikv.enableNamedStatusPort": f"{_TIKV}::test_the_status_port_is_named_when_wished",
    "tikv.privileged": f"{_TIKV}::test_security_context_defaults_to_unprivileged",
    "tikv.separate*Log": f"{_TIKV}::test_tailers_print_the_log_files",
    "tikv.logTailer.*": f"{_TIKV}::test_tailers_print_the_log_files",
    "tikv.*LogVolumeName": f"{_TIKV}::test_a_log_file_may_lie_on_an_additional_mount",
    "tidb.separateSlowLog": f"{_TIDB}::test_without_a_separate_slow_log",
    "tidb.slowLogVolumeName": f"{_TIDB}::test_the_slow_log_on_a_storage_volume",
    "tidb.slowLogTailer.*": f"{_TIDB}::test_the_slow_log_on_its_own_volume",
    "tidb.tlsClient.*": f"{_TIDB}::test_security_keys_that_the_operator_sets",
    "tidb.tlsClient.skipInternalClientCA": "member/test_pd.py::test_keys_that_the_operator_sets",
    "tidb.tokenBasedAuthEnabled": f"{_TIDB}::test_security_keys_that_the_operator_sets",
    "tidb.bootstrapSQLConfigMapName": f"{_TIDB}::test_bootstrap_sql_is_named_in_the_configuration_and_mounted",
    "tidb.plugins": f"{_TIKV_AND_TIDB}::test_tidbs_optional_flags",
    "tidb.arguments": f"{_TIKV_AND_TIDB}::test_tidbs_optional_flags",
    "tidb.lifecycle": f"{_TIDB}::test_lifecycle_and_customized_startup_probe",
    "tidb.customizedStartupProbe.*": f"{_TIDB}::test_lifecycle_and_customized_startup_probe",
    "tiflash.storageClaims*.resources": (
        "member/test_tiflash.py::test_each_claim_is_mounted_by_its_number_and_tailers_have_the_volume_of_their_file"
    ),
    "tiflash.config.*": "member/test_tiflash.py::test_the_users_settings_win",
    "tici.s3.*": "member/test_tici.py::test_the_bucket_in_the_configuration",
    "tici.reader.port": "member/test_tici.py::test_the_reader_in_tiflash",
    "tici.*.config": "member/test_tici.py::test_the_users_settings_win",
    "ticdc.tlsClientSecretNames": "member/test_ticdc.py::test_volumes_and_mounts_in_their_different_orders",
    "ticdc.config": f"{_SCRIPTS}/test_ticdc_script.py::test_flags_of_the_configuration_unless_wrongly_typed",
    "tiproxy.readinessProbe.*": f"{_TIPROXY}::test_a_readiness_probe_on_request",
    "tiproxy.sslEnableTiDB": f"{_TIPROXY}::test_the_configuration_names_the_mounted_certificates",
    "tiproxy.certLayout": f"{_TIPROXY}::test_the_configuration_names_the_mounted_certificates",
    "tiproxy.tlsClientSecretName": f"{_TIPROXY}::test_the_secret_for_sql_to_tidb_may_have_another_name",
    "tiproxy.config": f"{_TIPROXY}::test_the_operators_settings_and_the_users_settings",
    "pump.setTimeZone": "member/test_pump.py::test_sets_the_time_zone_only_on_request",
}
"""The test of a field's meaning, besides the test that every field arrives where the table says."""
