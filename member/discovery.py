"""Discovery, which pods of PD and DM-master ask at their first start whether to bootstrap or join (objects.md 10).

Its objects, pure functions of a defaulted cluster, are created before theirs, in the order of `act`.
"""

import json
from functools import partial

from apis.accessor import component
from apis.cluster import Cluster
from apis.identity import tls_enabled
from apis.tidbcluster import TidbCluster
from dataplane.addresses import DISCOVERY_PORT, DISCOVERY_PROXY_PORT
from kube.objects import Json
from kube.resources import DEPLOYMENTS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS
from member import labels
from member.apply.last_applied import applied
from member.apply.writes import apply, apply_service
from member.context import RESOURCES, ClusterContext, Held
from member.lifecycle.refused_writes import first_refusal
from member.lifecycle.suspend import paused
from member.naming import cluster_client_secret, cluster_secret, discovery_mtls, discovery_of, member_name
from member.objects import pod, volumes
from member.objects.pod import with_additional_containers
from member.objects.services import port
from member.objects.services import service as make_service
from member.objects.volumes import TOKEN_MOUNT, token_volume
from member.outcome import Done, Outcome

_RBAC = "rbac.authorization.k8s.io"

_MAY_LIST_CLAIMS: Json = {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["list"]}
"""Claims show if a PD cluster exists, even if the status does not (F40)."""

_MAY_GET_PODS: Json = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
"""A pod's owner, address and readiness show if a request comes from the pod that it names (10.3)."""


def wanted(tc: Cluster) -> bool:
    """True if the cluster needs Discovery: it has PD or masters, or uses a PD in another Kubernetes cluster."""
    return not isinstance(tc, TidbCluster) or tc.spec.pd is not None or tc.spec.across_k8s


def name_of(tc: Cluster) -> str:
    """The name of all of Discovery's objects."""
    return member_name(tc, discovery_of(tc))


def role_of(tc: Cluster) -> Json:
    """Discovery's rights: to read its cluster, labels of claims, pods, and with TLS the certificate for PD.

    v1.6 lets it read every Secret of the namespace.
    """
    rules = [_may_get("pingcap.com", RESOURCES[tc.kind].plural, tc.metadata.name), _MAY_LIST_CLAIMS, _MAY_GET_PODS]
    if tls_enabled(tc):
        rules.append(_may_get("", "secrets", cluster_client_secret(tc)))
    return _object(tc, f"{_RBAC}/v1", "Role", rules=rules)


def _may_get(group: str, resource: str, object_name: str) -> Json:
    return {"apiGroups": [group], "resources": [resource], "resourceNames": [object_name], "verbs": ["get"]}


def service_account(tc: Cluster) -> Json:
    """The service account of Discovery's pod."""
    return _object(tc, "v1", "ServiceAccount")


def role_binding(tc: Cluster) -> Json:
    """The binding of the role to the service account."""
    return _object(
        tc,
        f"{_RBAC}/v1",
        "RoleBinding",
        roleRef={"apiGroup": _RBAC, "kind": "Role", "name": name_of(tc)},
        subjects=[{"kind": "ServiceAccount", "name": name_of(tc)}],
    )


def deployment(tc: Cluster, image: str) -> Json:
    """The Deployment with Discovery's pod; `image` is the operator's (flag --tidb-discovery-image)."""
    template = _template(tc, image)
    record = json.dumps(template["spec"], separators=(",", ":"))
    return _object(
        tc,
        "apps/v1",
        "Deployment",
        annotations={labels.LAST_APPLIED_POD_TEMPLATE: record},
        spec={
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": labels.base_labels(tc, discovery_of(tc))},
            "template": template,
        },
    )


def service(tc: Cluster) -> Json:
    """The Service for PD's pods. Its selector has all labels of the pod, the user's included."""
    spec: Json = {
        "type": "ClusterIP",
        "ports": [port("discovery", DISCOVERY_PORT), port("proxy", DISCOVERY_PROXY_PORT)],
        "selector": _pod_labels(tc),
    }
    return make_service(tc, name_of(tc), spec, labels.base_labels(tc, discovery_of(tc)))


def _object(
    tc: Cluster, api_version: str, kind: str, *, annotations: dict[str, str] | None = None, **body: object
) -> Json:
    metadata = labels.object_meta(tc, name_of(tc), labels.base_labels(tc, discovery_of(tc)), annotations)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **body}


def _pod_labels(tc: Cluster) -> dict[str, str]:
    return component(tc, discovery_of(tc)).labels | labels.base_labels(tc, discovery_of(tc))


def _template(tc: Cluster, image: str) -> Json:
    discovery = component(tc, discovery_of(tc))
    spec = discovery.spec
    containers = with_additional_containers([_container(tc, image)], spec.additional_containers)
    special = _special_volumes(tc)
    mounts = [*containers[0].get("volumeMounts", ()), *(mount for mount, _ in special)]
    containers[0] = pod.without_unset(containers[0] | {"volumeMounts": mounts})
    pod_spec = pod.pod_spec(discovery) | pod.without_unset(
        {
            "initContainers": spec.init_containers,
            "containers": containers,
            "volumes": [*spec.additional_volumes, *(volume for _, volume in special)],
            "serviceAccountName": name_of(tc),
        }
    )
    metadata = pod.without_unset({"labels": _pod_labels(tc), "annotations": discovery.annotations})
    return {"metadata": metadata, "spec": pod_spec}


def _container(tc: Cluster, image: str) -> Json:
    discovery = component(tc, discovery_of(tc))
    container = pod.main_container(
        discovery,
        command=["/usr/local/bin/tidb-discovery"],
        ports=[
            pod.container_port("discovery", DISCOVERY_PORT),
            pod.container_port("proxy", DISCOVERY_PROXY_PORT),
        ],
        mounts=discovery.spec.additional_volume_mounts,
        builtin_env=[
            pod.env_from_field("MY_POD_NAMESPACE", "metadata.namespace"),
            pod.env("TZ", tc.spec.timezone or "UTC"),
            pod.env("TC_NAME", tc.metadata.name),
        ],
    )
    container |= {"name": discovery.type.label, "image": image}
    if _uses_pd_tls(tc):
        container["env"].append(pod.env("TC_TLS_ENABLED", "true"))
    if discovery_mtls(tc):
        container["env"].append(pod.env("DISCOVERY_MTLS_ENABLED", "true"))
    if tc.metadata.counts_slots:
        container["env"].append(pod.env("DELETE_SLOTS_COUNT", "true"))
    return container | _probes(tc)


def _probes(tc: Cluster) -> Json:
    spec = tc.spec.discovery
    if spec is None:
        return {}
    handler = pod.tcp_handler(DISCOVERY_PORT)
    given = {"readinessProbe": spec.readiness_probe, "livenessProbe": spec.liveness_probe}
    return {kind: pod.probe_as_given(handler, probe) for kind, probe in given.items() if probe is not None}


def _uses_pd_tls(tc: Cluster) -> bool:
    return isinstance(tc, TidbCluster) and tls_enabled(tc) and tc.spec.pd is not None


def _special_volumes(tc: Cluster) -> list[tuple[Json, Json]]:
    """Mounts and volumes after the user's: certificates, and the token if Kubernetes does not mount it."""
    secrets = {}
    if _uses_pd_tls(tc):
        secrets["pd-tls"] = cluster_secret(tc, "pd")
    if discovery_mtls(tc):
        secrets["discovery-tls"] = cluster_secret(tc, discovery_of(tc))
    special = list(zip(volumes.certificate_mounts(secrets), volumes.certificate_volumes(secrets), strict=True))
    if component(tc, discovery_of(tc)).automount_service_account_token is False:
        special.append((TOKEN_MOUNT, token_volume()))
    return special


async def act(ctx: ClusterContext) -> Outcome:
    """Apply Discovery's desired objects. Raises OwnerGone, ApiError, TransportError."""
    tc, listers, name = ctx.tc, ctx.listers, name_of(ctx.tc)
    if not wanted(tc):
        return Done("not part of this cluster")
    if ctx.held is Held.OBSERVING:
        return Done("Discovery is created once the spec is valid")
    if tc.spec.paused and ctx.held is Held.NO:
        return paused(tc.metadata.name)
    role, account, binding = (
        lister.get(ctx.namespace, name) for lister in (listers.roles, listers.service_accounts, listers.role_bindings)
    )
    desired = ctx.designed_tree(("discovery",), lambda: _objects(tc, ctx.settings.discovery_image))
    writes = (
        partial(apply, ctx, ROLES, desired["role"], role),
        partial(apply, ctx, SERVICE_ACCOUNTS, desired["account"], account),
        partial(apply, ctx, ROLE_BINDINGS, desired["binding"], binding),
        partial(_apply_deployment, ctx, desired["deployment"]),
        partial(apply_service, ctx, desired["service"]),
    )
    return await first_refusal(ctx, name, writes) or Done("all objects are in place")


def _objects(tc: Cluster, image: str) -> Json:
    return {
        "role": role_of(tc),
        "account": service_account(tc),
        "binding": role_binding(tc),
        "deployment": deployment(tc, image),
        "service": service(tc),
    }


async def _apply_deployment(ctx: ClusterContext, deployment: Json) -> None:
    cached = ctx.listers.deployments.get(ctx.namespace, deployment["metadata"]["name"])
    if cached and ctx.missing_certificates:
        # Discovery's pod would not start, and PD's pods wait for it; the certificates' outcome names what is missing
        return
    before = _with_live_pod_metadata(cached.decode()) if cached else None
    await apply(ctx, DEPLOYMENTS, deployment, cached, applied_before=before)


def _with_live_pod_metadata(live: Json) -> Json:
    """The last applied object, with all labels and annotations of the pods, so that foreign ones are removed (R27)."""
    template = ((applied(live) or {}).get("spec") or {}).get("template") or {}
    return {"spec": {"template": template | {"metadata": live["spec"]["template"].get("metadata") or {}}}}


def observe(_: ClusterContext) -> Outcome:
    """Return Done: the status has no part about Discovery."""
    return Done()
