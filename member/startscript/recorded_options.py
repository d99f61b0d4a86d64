"""The options of a spec that show in the text of a start script (objects.md 7.2).

If the options are unchanged and the text differs, the operator changed the script, not the user, and a running database
keeps its text (`member.objects.config_map`). Only options that differ from the default are listed, so that a new option
leaves old lists unchanged.
"""

from apis.component_specs import PDSpec
from apis.identity import tls_enabled
from apis.tidbcluster import TidbCluster
from kube.objects import Json
from member.naming import discovery_mtls, referenced_cluster
from member.startscript.pd import has_name

_DEFAULT_START_TIMEOUT = 30


def pd_options(tc: TidbCluster) -> Json:
    """The options of PD's start script."""
    pd = tc.spec.pd
    assert pd is not None
    microservices = bool(tc.spec.pdms) and pd.mode == "ms"
    options = _common(tc) | _given(
        dataSubDir=pd.data_sub_dir,
        startUpScriptVersion=pd.start_up_script_version,
        startTimeout=_start_timeout(pd),
        initWaitTime=pd.init_wait_time,
        microservices=microservices,
    )
    return options | _second_generation(tc) if microservices else options


def pdms_options(tc: TidbCluster, name: str) -> Json:
    """The options of a PD microservice's start script, also v1.6's, which has one script for both generations."""
    return (
        _common(tc) | _second_generation(tc) | _given(startTimeout=_start_timeout(tc.spec.pd), named=has_name(tc, name))
    )


def tikv_options(tc: TidbCluster) -> Json:
    """The options of TiKV's start script."""
    tikv = tc.spec.tikv
    assert tikv is not None
    return _common(tc) | _given(
        dataSubDir=tikv.data_sub_dir,
        enableDynamicConfiguration=tc.spec.enable_dynamic_configuration,
        preferIPv6=tc.spec.prefer_ipv6,
        startTimeout=_start_timeout(tc.spec.pd) if _is_v2(tc) else None,
    )


def tidb_options(tc: TidbCluster) -> Json:
    """The options of TiDB's start script."""
    tidb = tc.spec.tidb
    assert tidb is not None
    # v1 reads this from the pod's environment
    binlog = _is_v2(tc) and (tc.spec.pump is not None if tidb.binlog_enabled is None else tidb.binlog_enabled)
    return _common(tc) | _given(plugins=tidb.plugins, arguments=tidb.arguments, binlogEnabled=binlog)


def _common(tc: TidbCluster) -> Json:
    reference = referenced_cluster(tc)
    options = _given(
        tls=tls_enabled(tc),
        discoveryMTLS=discovery_mtls(tc),
        clusterDomain=tc.spec.cluster_domain,
        acrossK8s=tc.spec.across_k8s,
        cluster=[reference.namespace, reference.name, reference.cluster_domain] if reference else None,
    )
    return options | {"startScriptVersion": "v2"} | _second_generation(tc) if _is_v2(tc) else options


def _second_generation(tc: TidbCluster) -> Json:
    flags = sorted(tc.spec.start_script_v2_feature_flags)
    return _given(featureFlags=flags, pdAddresses=tc.spec.pd_addresses)


def _start_timeout(pd: PDSpec | None) -> int | None:
    timeout = pd.start_timeout if pd else 0
    return None if timeout in (0, _DEFAULT_START_TIMEOUT) else timeout


def _is_v2(tc: TidbCluster) -> bool:
    return tc.spec.start_script_version == "v2"


def _given(**options: object) -> Json:
    return {name: value for name, value in options.items() if value}
