"""The masters' desired objects (other-resources.md 6.4, 6.5). Pure functions of a defaulted DMCluster."""

from apis import toml
from apis.accessor import component
from apis.dm_components import DMMasterServiceSpec, DMMasterSpec
from apis.dmcluster import DMCluster
from apis.identity import scheme
from dataplane.addresses import DM_MASTER_PEER_PORT, DM_MASTER_PORT
from kube.objects import Json
from member.dm import shared
from member.dm.shared import master_script
from member.naming import member_name, peer_service
from member.objects import pod
from member.objects.config_map import CONFIG_FILE, STARTUP_SCRIPT, Content
from member.objects.services import end_user, peer, port

MASTER = "dm-master"


def services(dc: DMCluster) -> list[Json]:
    """The Services of the masters: one for clients, one for the masters among themselves."""
    chosen = _spec(dc).service or DMMasterServiceSpec()
    return [
        end_user(dc, MASTER, _for_clients(chosen), chosen.labels, chosen.annotations),
        peer(dc, MASTER, [port("dm-master-peer", DM_MASTER_PEER_PORT)]),
    ]


def _for_clients(chosen: DMMasterServiceSpec) -> Json:
    node_port = chosen.master_node_port or 0
    return pod.without_unset(
        {
            "type": chosen.type or "ClusterIP",
            "ports": [port(chosen.port_name or MASTER, DM_MASTER_PORT, node_port=node_port)],
            "clusterIP": chosen.cluster_ip,
            "loadBalancerIP": chosen.load_balancer_ip,
            "loadBalancerClass": chosen.load_balancer_class,
            "loadBalancerSourceRanges": chosen.load_balancer_source_ranges,
            "externalTrafficPolicy": chosen.external_traffic_policy,
        }
    )


def content(dc: DMCluster) -> Content:
    """The texts of the ConfigMap. Raises InvalidField for a configuration that validation rejects."""
    own = component(dc, MASTER)
    tables = own.config_tables()
    shared.put_certificates(tables, dc, MASTER)
    spec = _spec(dc)
    options = {"scheme": scheme(dc), "dataSubDir": spec.data_sub_dir, "lookup": spec.start_up_script_version}
    return Content({CONFIG_FILE: toml.dumps(tables), STARTUP_SCRIPT: master_script(dc)}, options)


def stateful_set(dc: DMCluster, config_map_name: str) -> Json:
    """The StatefulSet, whose pods read the ConfigMap of that name."""
    own_pod = [pod.POD_NAME] if component(dc, MASTER).host_network else []
    return shared.stateful_set(
        dc,
        MASTER,
        config_map_name,
        ports=[pod.container_port("peer", DM_MASTER_PEER_PORT), pod.container_port("client", DM_MASTER_PORT)],
        env=[
            pod.NAMESPACE,
            pod.env("PEER_SERVICE_NAME", peer_service(dc, MASTER)),
            pod.env("SERVICE_NAME", member_name(dc, MASTER)),
            pod.env("SET_NAME", member_name(dc, MASTER)),
            pod.env("TZ", dc.spec.timezone or "UTC"),
            *own_pod,
        ],
    )


def _spec(dc: DMCluster) -> DMMasterSpec:
    assert dc.spec.master is not None
    return dc.spec.master
