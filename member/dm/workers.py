"""The workers' desired objects (other-resources.md 6.4, 6.5). Pure functions of a defaulted DMCluster."""

from apis import toml
from apis.accessor import component
from apis.dmcluster import DMCluster
from dataplane.addresses import DM_WORKER_PORT
from kube.objects import Json
from member.dm import shared
from member.dm.shared import worker_script
from member.naming import member_name, peer_service
from member.objects import pod
from member.objects.config_map import CONFIG_FILE, STARTUP_SCRIPT, Content
from member.objects.services import peer, port

WORKER = "dm-worker"


def services(dc: DMCluster) -> list[Json]:
    """The headless Service through which the masters reach each worker."""
    return [peer(dc, WORKER, [port(WORKER, DM_WORKER_PORT)], used_by="")]


def content(dc: DMCluster) -> Content:
    """The texts of the ConfigMap. Raises InvalidField for a configuration that validation rejects."""
    tables = component(dc, WORKER).config_tables()
    shared.put_certificates(tables, dc, WORKER)
    return Content({CONFIG_FILE: toml.dumps(tables), STARTUP_SCRIPT: worker_script(dc)}, {})


def stateful_set(dc: DMCluster, config_map_name: str) -> Json:
    """The desired StatefulSet, whose pods mount the ConfigMap `config_map_name`."""
    own_pod = [pod.POD_NAME] if component(dc, WORKER).host_network else []
    return shared.stateful_set(
        dc,
        WORKER,
        config_map_name,
        ports=[pod.container_port("client", DM_WORKER_PORT)],
        env=[
            pod.NAMESPACE,
            pod.env("CLUSTER_NAME", dc.metadata.name),
            pod.env("HEADLESS_SERVICE_NAME", peer_service(dc, WORKER)),
            pod.env("SET_NAME", member_name(dc, WORKER)),
            pod.env("TZ", dc.spec.timezone or "UTC"),
            *own_pod,
        ],
    )
