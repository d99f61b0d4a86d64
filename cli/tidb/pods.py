"""The pods of a cluster, with the facts that users need."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from apis.accessor import components
from apis.cluster import Cluster
from kube.client import Client
from kube.objects import Object
from kube.resources import PODS
from member.labels import INSTANCE, MANAGED_BY, NAME, TIDB_OPERATOR, base_labels
from member.observed.command_annotations import commands_of
from member.observed.pod import Pod


@dataclass(frozen=True, slots=True)
class ClusterPod:
    """A pod of a component of a cluster."""

    component: str
    object: Object
    pod: Pod

    @property
    def name(self) -> str:
        """The name of the pod."""
        return self.object.metadata.name

    @property
    def is_going(self) -> bool:
        """True if it is being deleted."""
        return self.object.metadata.deletion_timestamp is not None

    @property
    def state(self) -> str:
        """One or two words, like kubectl's: Running, NotReady, Pending, Terminating, or why a container
        does not run.
        """
        if self.is_going:
            return "Terminating"
        waiting = (
            container.state.waiting.reason
            for container in (*self.pod.status.init_container_statuses, *self.pod.status.container_statuses)
            if container.state.waiting and container.state.waiting.reason
        )
        if reason := next(waiting, ""):
            return reason
        if self.pod.status.phase == "Running" and not self.pod.is_ready:
            return "NotReady"
        return self.pod.status.phase or "Pending"

    @property
    def runs(self) -> bool:
        """True if the server's container runs, according to the kubelet; sidecars do not count."""
        of_server = [status for status in self.pod.status.container_statuses if status.name == self.component]
        if not of_server:
            return self.pod.status.phase == "Running"
        return any(container.state.running is not None for container in of_server)

    @property
    def restarts(self) -> int:
        """The number of restarts of its containers."""
        return sum(status.restart_count for status in self.pod.status.container_statuses)

    @property
    def commands(self) -> list[str]:
        """Its commands as `annotation=value`, without the domain."""
        return [f"{command.key.partition('/')[2]}={command.value}" for command in commands_of(self.object)]


def list_pods(client: Client, cluster: Cluster) -> list[ClusterPod]:
    """The pods of a cluster, component by component. Raises ApiError, TransportError."""
    selector = f"{NAME}={cluster.LABELLED_NAME},{MANAGED_BY}={TIDB_OPERATOR},{of_instances(cluster)}"
    return pods_among(client.list_page(PODS, cluster.metadata.namespace, label_selector=selector).items, cluster)


def of_instances(cluster: Cluster) -> str:
    """The selector of the label that all objects of a cluster carry."""
    instances = {base_labels(cluster, component.name)[INSTANCE] for component in components(cluster)}
    return f"{INSTANCE} in ({','.join(sorted(instances))})"


def pods_among(found: Sequence[Object], cluster: Cluster) -> list[ClusterPod]:
    """The pods of a cluster among others, component by component."""
    return [
        ClusterPod(component.name, pod, pod.decode_as(Pod))
        for component in components(cluster)
        for pod in sorted(found, key=lambda each: _order(each.metadata.name))
        if _is_of(cluster, pod, base_labels(cluster, component.name))
    ]


def _is_of(cluster: Cluster, pod: Object, carried: Mapping[str, str]) -> bool:
    meta = pod.metadata
    return meta.name.startswith(f"{cluster.metadata.name}-") and carried.items() <= meta.labels.items()


def _order(name: str) -> tuple[str, int]:
    """Sort by ordinal, if there is one."""
    stem, _, ordinal = name.rpartition("-")
    return (stem, int(ordinal)) if ordinal.isdecimal() else (name, 0)
