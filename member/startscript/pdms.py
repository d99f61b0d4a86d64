"""The start script of PD's microservices (objects.md 7.5)."""

from apis import images
from apis.accessor import component
from apis.identity import scheme
from apis.tidbcluster import TidbCluster
from dataplane.addresses import PD_CLIENT_PORT
from member.startscript import options
from member.startscript.fragments import assemble, expressions, fragment, settings

_NAMED_SINCE = "v8.3.0"


def pdms_script(tc: TidbCluster, name: str) -> str:
    """The text of `pdms_start_script.sh` for a microservice."""
    return assemble(
        "#!/bin/sh",
        f"Starts PD's microservice {name} in its pod. Made by tidb-operator from the TidbCluster.",
        fragment("prologue"),
        options.names(tc, name, literal=True) + _settings(tc, name) + _pd(tc),
        options.wait_for_own_address(tc, "dig"),
        options.verified_pd(tc, "pd", with_scheme=True) if _asks_discovery(tc) else fragment("random"),
        fragment("pdms_start"),
    )


def has_name(tc: TidbCluster, name: str) -> bool:
    """True if the members of a microservice have names."""
    return images.at_least(component(tc, name).version, _NAMED_SINCE)


def _settings(tc: TidbCluster, name: str) -> str:
    member = ("$DOMAIN" if tc.spec.cluster_domain else "$POD") if has_name(tc, name) else ""
    return settings(SERVICE=name, SCHEME=scheme(tc)) + expressions(MEMBER=member)


def _preferred(tc: TidbCluster) -> list[str]:
    """The hosts that the flag prefers; microservices use it with scripts of both generations."""
    return options.preferred_pd(tc, v2=True)


def _pd(tc: TidbCluster) -> str:
    if hosts := _preferred(tc):
        return settings(PD=",".join(f"{scheme(tc)}://{host}:{PD_CLIENT_PORT}" for host in hosts))
    return options.pd_service(tc, with_scheme=True)


def _asks_discovery(tc: TidbCluster) -> bool:
    return tc.spec.across_k8s and not _preferred(tc)
