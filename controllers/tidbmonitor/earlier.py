"""Data about clusters in other namespaces that a monitor already has, from v1.6 or a time when all was permitted.

If the owner of such a cluster has not consented, the monitor keeps exactly these data, and the operator reads no more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from apis.components import DM_CLUSTER
from apis.monitors import TidbMonitor
from controllers.consent import marks
from controllers.simple_kind import Reconcile
from controllers.target_cluster import CERTIFICATE_KEYS
from kube.objects import Object
from kube.resources import CONFIG_MAPS, SECRETS
from member.monitor.configuration import Job, jobs_of_cluster, jobs_of_table
from member.monitor.naming import Target, asset, assets_name, monitor_name
from member.naming import client_secret_of

_JOB, _EXPRESSION = "- job_name: ", "regex: "


@dataclass(frozen=True)
class Earlier:
    """`config` is the configuration of Prometheus, `assets` are its files in base64.

    `marks` are the targets whose grants it depends on: their data are removed when the grant is withdrawn.
    """

    config: str | None
    assets: Mapping[str, str]
    marks: frozenset[str]

    @classmethod
    def of(cls, ctx: Reconcile[TidbMonitor]) -> Self:
        """The data in the cached objects of the monitor."""
        config = ctx.cached(CONFIG_MAPS, monitor_name(ctx.model))
        text = _data(ctx, config).get("prometheus.yml")
        return cls(text, _data(ctx, ctx.cached(SECRETS, assets_name(ctx.model))), marks(config))

    def target(self, kind: str, namespace: str, name: str) -> Target | None:
        """A cluster as it is monitored already; None for one that is not, or that was on the strength of a grant."""
        instance = self._instance(kind, namespace, name)
        if not instance or f"{kind} {namespace}/{name}" in self.marks:
            return None
        secret = client_secret_of(kind, name)
        shown = secret if self.certificate(namespace, secret) else ""
        more = frozenset(job.component for job in _jobs(kind) if not job.always and self._has(job, namespace, name))
        return Target(namespace, name, instance, shown, more, is_kept=True)

    def certificate(self, namespace: str, secret: str) -> dict[str, str]:
        """The files that the monitor has of the Secret of a cluster."""
        files = [asset(namespace, secret, key) for key in CERTIFICATE_KEYS]
        return {file: self.assets[file] for file in files if file in self.assets}

    def _instance(self, kind: str, namespace: str, name: str) -> str:
        """The instance label by which Prometheus finds the cluster's pods; empty if no job finds them."""
        found = (self._instances.get(f"{namespace}-{name}-{job.name}") for job in _jobs(kind))
        return next(filter(None, found), "")

    def _has(self, job: Job, namespace: str, name: str) -> bool:
        return f"{namespace}-{name}-{job.name}" in self._instances

    @cached_property
    def _instances(self) -> dict[str, str]:
        """The first expression of each job, which is the label: read once and line by line, as users may edit it."""
        found: dict[str, str] = {}
        job = ""
        for line in (self.config or "").splitlines():
            if line.startswith(_JOB):
                job = line.removeprefix(_JOB)
            elif job and line.lstrip().startswith(_EXPRESSION):
                found.setdefault(job, line.lstrip().removeprefix(_EXPRESSION).replace("\\.", "."))
        return found


def _jobs(kind: str) -> Iterable[Job]:
    return jobs_of_table(DM_CLUSTER) if kind == DM_CLUSTER else jobs_of_cluster()


def certificate_files(mark: str) -> str:
    """The prefix of the files with a target's certificate; `mark` is the target as `Kind namespace/name`."""
    kind, _, key = mark.partition(" ")
    namespace, _, name = key.partition("/")
    return asset(namespace, client_secret_of(kind, name), "")


def _data(ctx: Reconcile[TidbMonitor], found: Object | None) -> Mapping[str, str]:
    if found is None or not ctx.controls(found):
        return {}
    data: Mapping[str, str] = found.decode().get("data") or {}
    return data
