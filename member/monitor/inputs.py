"""What the objects of a monitor are made of beside its spec: the clusters that were found, and what they bring."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from apis.tidbcluster import TidbCluster


@dataclass(frozen=True, slots=True)
class Target:
    """A cluster whose pods are scraped.

    `instance` is the label of its pods; `secret` holds the certificate to show to them, empty where they speak no TLS.
    """

    namespace: str
    name: str
    instance: str
    secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What was found for one reconcile.

    `first` is the first TidbCluster with a PD of its own. `assets` are files for Prometheus, in base64 by name:
    certificates and passwords. `users` are names for remote write, by Secret and key. `given_config` replaces the
    whole generated configuration.
    """

    clusters: Sequence[Target]
    dm_clusters: Sequence[Target] = ()
    first: TidbCluster | None = None
    assets: Mapping[str, str] = field(default_factory=dict)
    users: Mapping[tuple[str, str], str] = field(default_factory=dict)
    given_config: str | None = None
    operator_rules: str = ""
    operator_dashboard: str = ""


ASSETS = "/var/lib/cluster-assets-tls"
"""Where Prometheus finds `assets`."""


def asset(namespace: str, name: str, key: str, kind: str = "secret") -> str:
    """The name of the file that a key of a Secret or ConfigMap becomes."""
    return f"{kind}_{namespace}_{name}_{key}"


def asset_path(namespace: str, name: str, key: str, kind: str = "secret") -> str:
    """Where Prometheus finds it."""
    return f"{ASSETS}/{asset(namespace, name, key, kind)}"
