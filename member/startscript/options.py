"""Settings of the spec that affect all start scripts (objects.md 7.1-7.3)."""

from apis.identity import scheme
from apis.tidbcluster import TidbCluster
from dataplane.addresses import DISCOVERY_PORT, PD_CLIENT_PORT
from member.naming import discovery_mtls, referenced_cluster
from member.startscript.fragments import expressions, fragment, settings

WAIT_FOR_OWN_ADDRESS = "WaitForDnsNameIpMatch"
PREFER_PD_ADDRESSES = "PreferPDAddressesOverDiscovery"
BASH_SHEBANG = "BashShebang"
NO_WAIT_DNS = "NoWaitDNS"

_START_TIMEOUT = 30


def is_v2(tc: TidbCluster) -> bool:
    """True if the cluster uses the second generation of scripts."""
    return tc.spec.start_script_version == "v2"


def has_flag(tc: TidbCluster, flag: str) -> bool:
    """True if the spec sets this feature flag of v2 scripts."""
    return flag in tc.spec.start_script_v2_feature_flags


def names(tc: TidbCluster, component: str, *, literal: bool) -> str:
    """Settings of CLUSTER, NAMESPACE and DOMAIN, the host name of this pod for other pods.

    v1 takes the names from the pod's environment, so that equal options give equal texts in every cluster.
    """
    suffix = f"svc.{tc.spec.cluster_domain}" if tc.spec.cluster_domain else "svc"
    if literal:
        taken = settings(CLUSTER=tc.metadata.name, NAMESPACE=tc.metadata.namespace)
    else:
        taken = expressions(CLUSTER="${PEER_SERVICE_NAME%-pd-peer}" if component == "pd" else "$CLUSTER_NAME")
    domain = expressions(DOMAIN=f"$POD.$CLUSTER-{component}-peer.$NAMESPACE.$SUFFIX")
    return taken + settings(SUFFIX=suffix) + domain


def pd_member(tc: TidbCluster) -> str:
    """The setting of MEMBER, the name of a member of PD."""
    long_name = tc.spec.across_k8s or tc.spec.cluster_domain
    return expressions(MEMBER="$DOMAIN" if long_name else "$POD")


def start_timeout(tc: TidbCluster) -> int:
    """Seconds to wait for DNS; TiKV waits as long as PD."""
    return (tc.spec.pd.start_timeout if tc.spec.pd else 0) or _START_TIMEOUT


def preferred_pd(tc: TidbCluster, *, v2: bool) -> list[str]:
    """The hosts of spec.pdAddresses if a v2 script uses them instead of Discovery; otherwise empty."""
    if not v2 or not has_flag(tc, PREFER_PD_ADDRESSES):
        return []
    return [_host(address) for address in tc.spec.pd_addresses]


def pd_address(tc: TidbCluster, *, with_scheme: bool) -> str:
    """The setting of PD for TiKV and TiDB; asks Discovery if members are in several Kubernetes clusters."""
    if hosts := preferred_pd(tc, v2=is_v2(tc)):
        return settings(PD=",".join(f"{host}:{PD_CLIENT_PORT}" for host in hosts))
    return pd_service(tc, with_scheme=with_scheme)


def pd_service(tc: TidbCluster, *, with_scheme: bool) -> str:
    """The setting of PD to its Service, regardless of `spec.pdAddresses`."""
    prefix = f"{scheme(tc)}://" if with_scheme else ""
    reference = referenced_cluster(tc)
    if tc.spec.across_k8s or reference is None:
        return expressions(PD=f"{prefix}$CLUSTER-pd:{PD_CLIENT_PORT}")
    own_namespace = reference.namespace in ("", tc.metadata.namespace)
    namespace = "$NAMESPACE" if own_namespace else reference.namespace
    suffix = f"svc.{reference.cluster_domain}" if reference.cluster_domain else "svc"
    return expressions(PD=f"{prefix}{reference.name}-pd.{namespace}.{suffix}:{PD_CLIENT_PORT}")


def asks_discovery(tc: TidbCluster) -> bool:
    """True if TiKV and TiDB ask Discovery for PD's address."""
    return tc.spec.across_k8s and not preferred_pd(tc, v2=is_v2(tc))


def verified_pd(tc: TidbCluster, component: str, *, with_scheme: bool) -> str:
    """The setting of PD to Discovery's answer about it."""
    parts = [discovery(tc, component, "$CLUSTER-discovery.$NAMESPACE"), fragment("verify_pd")]
    if not with_scheme:
        parts.append(fragment("without_scheme"))
    return "\n".join(parts)


def discovery(tc: TidbCluster, component: str, host: str) -> str:
    """The setting of DISCOVERY, and the functions to ask it again and again."""
    return f"{asked_once(tc, component, host)}\n{fragment('random')}"


def asked_once(tc: TidbCluster, component: str, host: str) -> str:
    """The setting of DISCOVERY, and the functions to ask it."""
    address = expressions(DISCOVERY=f"{host}:{DISCOVERY_PORT}")
    ask = fragment("ask_over_http")
    if discovery_mtls(tc):
        address += settings(CERTIFICATES=f"/var/lib/{component}-tls")
        ask = fragment("ask_over_mtls")
    return "\n".join([address, ask, fragment("encoded")])


def wait_for_own_address(tc: TidbCluster, lookup: str) -> str:
    """Wait until the name resolves to an address of this pod; `lookup` is `dig` or `getent`."""
    return "\n".join([_timeout(tc), fragment(lookup), fragment("own_address"), fragment("wait_for_dns")])


def wait_for_any_address(tc: TidbCluster, lookup: str) -> str:
    """Wait until the name resolves; `lookup` is `dig` or `nslookup`."""
    resolves = fragment("nslookup") if lookup == "nslookup" else f"{fragment('dig')}\n{fragment('any_address')}"
    return "\n".join([_timeout(tc), resolves, fragment("wait_for_dns")])


def _timeout(tc: TidbCluster) -> str:
    return settings(START_TIMEOUT=start_timeout(tc))


def _host(address: str) -> str:
    """The host of `[scheme://]host[:port]`."""
    rest = address.partition("://")[2] or address
    return rest.partition("/")[0].rpartition(":")[0] or rest.partition("/")[0]
