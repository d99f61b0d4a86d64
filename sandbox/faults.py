"""Faults of a World, as methods (reliability.md FP1-FP12, dataplane-apis.md 15.4).

Each method injects a fault and returns a function that removes it; `heal` removes all. Names are globs: pods are
`namespace/name`; nodes, images and users are plain names; a PD cluster is `namespace/cluster`.
"""

from collections.abc import Callable, Iterable, MutableSet
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from kube.client import Client
from kube.errors import NotFound
from kube.objects import Json
from kube.resources import NODES, PODS
from ports.sql import SqlLogin
from ports.transport import Request, TransportError
from sandbox.apiserver import ApiServer
from sandbox.apiserver.audit import Call
from sandbox.apiserver.faults import Fault as ApiFault
from sandbox.apiserver.faults import Faults
from sandbox.apiserver.refusals import Refusal
from sandbox.controllers.stateful_set import StatefulSets
from sandbox.dataplane.dm.book import Book as DMBook
from sandbox.dataplane.faults import Fault, Trouble
from sandbox.dataplane.log_backup import LogTask
from sandbox.dataplane.network import Origin
from sandbox.dataplane.pd.cluster import LogStream, PdCluster
from sandbox.dataplane.processes import DiskTrouble
from sandbox.dataplane.runtime import CHANGED, DataPlane
from sandbox.dataplane.ticdc.book import Book
from sandbox.kubelet.kubelet import Kubelet
from sandbox.notifier import Notifier
from sandbox.policies import POLICIES
from sandbox.scheduler import Scheduler
from sandbox.webhooks import WEBHOOKS

_OVER_QUOTA = "exceeded quota: sandbox, requested: count=1, used: count=0, limited: count=0"


_MAINTENANCE: Json = {"key": "example.com/maintenance", "effect": "NoExecute"}
_OUT_OF_ROOM = "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 1Gi."


class _Named(msgspec.Struct):
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


_NAMES = msgspec.json.Decoder(_Named)

OUTSIDE = str(Origin())
"""An origin outside of all pods, e.g. the operator."""

Heal = Callable[[], None]
"""Removes one fault. Idempotent."""

_STORES = "/pd/api/v1/stores"
_SCHEDULERS = "/pd/api/v1/schedulers"
_NO_STORES = b'{\n  "count": 0,\n  "stores": []\n}\n'


class WorldFaults:
    """Breaks one World and repairs it. For use in the thread that drives the world."""

    def __init__(
        self,
        *,
        server: ApiServer,
        administrator: Client,
        notifier: Notifier,
        kubelet: Kubelet,
        scheduler: Scheduler,
        stateful_sets: StatefulSets,
        data_plane: DataPlane,
        components: Iterable[str],
    ) -> None:
        """`components` are the users of the world's own components, which API faults spare."""
        self._server = server
        self._administrator = administrator
        self._notifier = notifier
        self._kubelet = kubelet
        self._scheduler = scheduler
        self._stateful_sets = stateful_sets
        self._data_plane = data_plane
        self._components = frozenset(components)
        self._asked_first: Faults = server.faults
        self._api: list[Faults] = []
        self._refused: list[tuple[str, str, str]] = []
        self._active: dict[int, Heal] = {}
        self._count = 0
        server.faults = self._judge

    def heal(self) -> None:
        """Remove every fault."""
        for each in list(self._active.values()):
            each()

    # nodes

    def node_gone(self, node: str) -> Heal:
        """Stop the machine with all its processes; healing restarts it and its pods."""
        return self._hold(self._kubelet.faults.gone, node)

    def host_gone(self, pod: str) -> Heal:
        """Stop the machine of a pod (whole name); see `node_gone`. Raises LookupError."""
        return self.node_gone(self._kubelet.node_of(*pod.split("/")).name)

    def host_removed(self, pod: str) -> Heal:
        """Stop the machine of a pod and delete its Node, as autoscalers do; after healing it registers as new.

        Raises LookupError if the machine has no Node.
        """
        node = self._registered(self._kubelet.node_of(*pod.split("/")).name)["metadata"]["name"]
        start = self.node_gone(node)
        self._administrator.delete(NODES, node)
        return start

    def host_tainted(self, pod: str) -> Heal:
        """Taint the machine of a pod (whole name) so that all pods must leave. Raises LookupError."""
        node = self._kubelet.node_of(*pod.split("/")).name
        self._taint(node, lambda others: [*others, _MAINTENANCE])

        def untaint() -> None:
            with suppress(LookupError):  # a Node that has been deleted has no taint
                self._taint(node, lambda others: others or None)

        return self._remember(untaint)

    def _taint(self, node: str, taints: Callable[[list[Json]], list[Json] | None]) -> None:
        there: list[Json] = self._registered(node)["spec"].get("taints") or []
        others = [each for each in there if each["key"] != _MAINTENANCE["key"]]
        self._administrator.patch(NODES, node, "", {"spec": {"taints": taints(others)}})

    def _registered(self, node: str) -> Json:
        try:
            return self._administrator.get(NODES, node).decode()
        except NotFound:
            raise LookupError(f"machine {node} has no Node") from None

    def zone_gone(self, pod: str) -> Heal:
        """Stop all machines in the zone of a pod (whole name); see `node_gone`. Raises LookupError."""
        return self.machines_gone(self._kubelet.node_of(*pod.split("/")).zone)

    def machines_gone(self, zone: str) -> Heal:
        """Stop all machines in a zone; see `node_gone`."""
        heals = [self.node_gone(each) for each in self._kubelet.zone(zone)]

        def start() -> None:
            for each in heals:
                each()

        return start

    def node_cut_off(self, node: str) -> Heal:
        """Cut the node's kubelet off from the API server: pods become Unknown and stuck, their processes serve on."""
        return self._hold(self._kubelet.faults.cut_off, node)

    def host_cut_off(self, pod: str) -> Heal:
        """Cut off the node of a pod (whole name); see `node_cut_off`. Raises LookupError."""
        return self.node_cut_off(self._kubelet.node_of(*pod.split("/")).name)

    def node_emptied(self, node: str) -> None:
        """Delete the data on the node's local disks, as when a new machine takes over the name."""
        for uid in self._kubelet.claims_on(node):
            self._data_plane.lose_disk(uid)

    # pods

    def pod_pending(self, pod: str) -> Heal:
        """The scheduler finds no node for such pods; bound ones keep theirs."""
        return self._hold(self._scheduler.held, pod)

    def pod_crash(self, pod: str) -> None:
        """End the processes of running pods once, with exit code 1."""
        for namespace, name in self._data_plane.pods(pod):
            self._data_plane.crash(namespace, name)

    def pod_crash_loop(self, pod: str) -> Heal:
        """End the processes now and after every start."""
        healed = self._hold(self._kubelet.faults.crashing, pod)
        self.pod_crash(pod)
        return healed

    def pod_disk_full(self, pod: str) -> Heal:
        """Fill the volumes of such pods: their processes end now and after every start."""
        healed = self._hold(self._kubelet.faults.full, pod)
        self.pod_crash(pod)
        return healed

    def pod_evicted(self, pod: str) -> None:
        """Evict such pods for lack of resources: they become Failed, and must be replaced."""
        for namespace, name in self._data_plane.pods(pod):
            self._kubelet.evict(namespace, name, _OUT_OF_ROOM)

    def pod_hang(self, pod: str) -> Heal:
        """Suspend the processes of running pods, which then answer no request."""
        hung = self._data_plane.pods(pod)
        for namespace, name in hung:
            self._data_plane.hang(namespace, name)

        def resume() -> None:
            for namespace, name in hung:
                self._data_plane.hang(namespace, name, False)

        return self._remember(resume)

    def pod_slow(self, pod: str, seconds: float) -> Heal:
        """Delay the service of processes that start from now on, as with many regions."""
        slow = self._kubelet.faults.slow
        slow[pod] = seconds

        def as_ever() -> None:
            slow.pop(pod, None)

        return self._remember(as_ever)

    def pod_unready(self, pod: str) -> Heal:
        """Let the readiness probe fail, whatever the process answers."""
        return self._hold(self._kubelet.faults.unready, pod)

    def pod_terminating(self, pod: str) -> Heal:
        """Keep deleted pods Terminating after their processes ended; forced deletion works."""
        return self._hold(self._kubelet.faults.stuck, pod)

    def one_unavailable_at_most(self) -> Heal:
        """StatefulSets replace no outdated pod while one is unavailable, as initially in Kubernetes 1.35."""
        self._stateful_sets.one_at_most = True
        self._wake()

        def as_ever() -> None:
            self._stateful_sets.one_at_most = False
            self._wake()

        return self._remember(as_ever)

    def join_interrupted(self, pod: str) -> Heal:
        """Such PDs end, each time they join, between becoming a member and recording it on their disk."""
        return self._hold(self._data_plane.interrupted_joins, pod)

    def image_pushed(self, image: str) -> Heal:
        """Make an image pullable (glob, as in pod specs) that the registries lack."""
        return self._hold(self._kubelet.faults.pushed_images, image)

    def pod_out_of_memory(self, pod: str) -> Heal:
        """Kill the processes after every start for exceeding their memory limit."""
        return self._hold(self._kubelet.faults.out_of_memory, pod)

    def image_for_others(self, image: str) -> Heal:
        """Such images exist, but not for the nodes' architecture."""
        return self._hold(self._kubelet.faults.foreign_images, image)

    def image_missing(self, image: str) -> Heal:
        """Such images cannot be pulled, even on nodes that have them."""
        return self._hold(self._kubelet.faults.missing_images, image)

    def disk_lost(self, namespace: str, claim: str) -> None:
        """Delete the data of a claim; a running process notices at its next start. Raises LookupError."""
        uid = self._kubelet.claim_uid(namespace, claim)
        self._data_plane.lose_disk(uid)

    # what users and commands keep

    def sql(self, cluster: str, statements: list[str]) -> None:
        """Execute statements of users (`sandbox.dataplane.tables`). Raises SqlRefused, ConnectionRefused."""
        namespace, _, name = cluster.partition("/")
        login = SqlLogin(f"{name}-tidb.{namespace}", 4000, "root")
        self._data_plane.sql().execute(login, statements)

    def log_backup(self, cluster: str, task: str = "demo") -> None:
        """Start a log backup from now on, as BR does. Raises LookupError if no PD member runs."""
        pd, now = self._pd(cluster), self._data_plane.clock.now
        begins = pd.tables.now()
        pd.streams[task] = LogStream(self._data_plane.disk(f"s3://{task}"), "log/", begins)
        LogTask(pd.etcd, task, now).begin(begins)
        self._data_plane.changed()

    def command_ends(self, pod: str, call: int) -> Heal:
        """End the process of a command in such a pod right after its n-th external call, once."""
        self._data_plane.last_calls[pod] = call

        def lives() -> None:
            self._data_plane.last_calls.pop(pod, None)

        return self._remember(lives)

    def bucket_trouble(self, bucket: str, trouble: str) -> Heal:
        """Let object storage fail for one bucket, as a `DiskTrouble` says."""
        disk = self._data_plane.disk(f"s3://{bucket}")
        disk.trouble = DiskTrouble(trouble)

        def works() -> None:
            disk.trouble = None

        return self._remember(works)

    # the network between operator, pods and PD

    def network_cut(
        self, target: str = "*", origin: str = OUTSIDE, *, refuse: bool = False, port: int | None = None
    ) -> Heal:
        """Drop everything from `origin` (default: the operator) to the pods: time-outs, or immediate refusals.

        With a `port` only that one is cut off, e.g. 2380 between PD's members.
        """
        return self._inject(Fault(Trouble.REFUSE if refuse else Trouble.BLACK_HOLE, target, origin, port))

    def kubernetes_cut_off(self) -> Heal:
        """Separate this Kubernetes from those beside it (`World`); each continues on its own."""
        network = self._data_plane.network
        network.cut_off()
        return self._remember(lambda: network.cut_off(apart=False))

    def network_slow(self, seconds: float, target: str = "*", origin: str = OUTSIDE) -> Heal:
        """Delay every answer by `seconds`; writes take effect late, even if the sender has given up."""
        return self._inject(Fault(Trouble.SLOW, target, origin, seconds=seconds))

    def network_fault(self, fault: Fault) -> Heal:
        """Inject any fault of the data plane's network that has no method of its own."""
        return self._inject(fault)

    def server_lies(self, target: str, lie: str, about: str = "", *, every: int = 1) -> Heal:
        """Servers answer with a `lie` of `sandbox.dataplane.lies` about a pod: all reads, or each n-th one."""
        return self._inject(Fault(Trouble.LIE, target, "*", lie=lie, about=about, every=every))

    # PD

    def pd_lies(self, cluster: str, lie: str, who: str, about: str = "", *, every: int = 1) -> Heal:
        """PD's leader, a follower (`who`), or all members lie. Raises LookupError if no member runs, or none leads."""
        pd = self._pd(cluster)
        leader = pd.leader
        if leader is None:
            raise LookupError(f"PD of {cluster} has no leader")
        followers = sorted(member.name for member in pd.members.values() if member is not leader)
        liar = {"all": "*", "leader": leader.name, "follower": (followers or [leader.name])[0]}[who].partition(".")[0]
        namespace, _, name = cluster.partition("/")
        return self.server_lies(f"{namespace}/{liar if liar != '*' else f'{name}-pd-*'}", lie, about, every=every)

    def pd_no_leader(self, cluster: str) -> Heal:
        """No leader can be elected. Raises LookupError if no member of the cluster runs."""
        pd = self._pd(cluster)
        pd.no_leader = True
        self._data_plane.changed()

        def elect() -> None:
            pd.no_leader = False
            self._data_plane.changed()

        return self._remember(elect)

    def pd_leader_changes(self, cluster: str) -> None:
        """Make another member the leader. Raises LookupError if no member of the cluster runs."""
        self._pd(cluster).transfer(None)
        self._data_plane.changed()

    def pd_slow_to_load(self, cluster: str, reporting: float) -> Heal:
        """Regions take `reporting` seconds to report to a new leader, which schedules nothing until then.

        Raises LookupError if no member of the cluster runs.
        """
        stores = self._pd(cluster).stores
        stores.reporting = reporting

        def as_ever() -> None:
            stores.reporting = 0.0

        return self._remember(as_ever)

    def placement_rule(self, cluster: str, count: int) -> Heal:
        """Set another number of replicas than max-replicas, as a user. Raises LookupError if no PD member runs."""
        pd = self._pd(cluster)

        def remove() -> None:
            pd.placement.remove("pd", "default")
            self._reschedule(pd)

        pd.placement.set({"group_id": "pd", "id": "default", "count": count})
        self._reschedule(pd)
        return self._remember(remove)

    def tiflash_replicas(self, cluster: str, count: int, table: int = 45) -> Heal:
        """Set the number of TiFlash replicas of a table, as ALTER TABLE does, until healed."""
        pd, rule = self._pd(cluster), f"table-{table}-r"

        def drop() -> None:
            pd.placement.remove("tiflash", rule)
            self._reschedule(pd)

        pd.placement.set({"group_id": "tiflash", "id": rule, "role": "learner", "count": count})
        self._reschedule(pd)
        return self._remember(drop)

    def changefeed(self, cluster: str, tables: int) -> None:
        """Replicate tables through TiCDC from now on. Raises LookupError if no PD member runs."""
        Book(self._pd(cluster).etcd, self._data_plane.clock.now()).create_changefeed("simulated", tables)

    def dm_sources(self, cluster: str, names: list[str]) -> None:
        """Replicate these sources through DM from now on. Raises LookupError if no master runs."""
        book = DMBook(self._pd(cluster).etcd, self._data_plane.clock.now())
        for name in names:
            book.create_source(name)
        self._data_plane.changed()

    def _reschedule(self, pd: PdCluster) -> None:
        pd.stores.reschedule(self._data_plane.clock.now())
        self._data_plane.changed()

    def eviction_refused(self, cluster: str) -> Heal:
        """PD adds no evict-leader scheduler, as while another scheduler holds the store's leaders."""
        body = b'"[PD:core:ErrPauseLeaderTransfer]store is paused for leader transfer"\n'
        return self.pd_answers(cluster, 500, body, path=_SCHEDULERS, method="POST")

    def pd_answers(
        self, cluster: str, status: int, body: bytes = b"", *, path: str = "*", method: str = "*", every: int = 1
    ) -> Heal:
        """PD gives this answer without any effect: to all requests, or to each n-th one."""
        target = f"{cluster}-pd-*"
        return self._inject(
            Fault(Trouble.ANSWER, target, path=path, method=method, status=status, body=body, every=every)
        )

    def server_refuses(self, target: str, path: str, method: str = "*") -> Heal:
        """Servers answer such requests with an error, without any effect. Globs: `target` on pods, `path`, `method`."""
        return self._inject(Fault(Trouble.ANSWER, target, path=path, method=method))

    def server_pretends(self, target: str, path: str, method: str, body: str, status: int) -> Heal:
        """Servers give this answer to such requests, and do nothing for it. Globs as in `server_refuses`."""
        answer = Fault(Trouble.ANSWER, target, path=path, method=method, status=status, body=body.encode())
        return self._inject(answer)

    def pd_truncated(self, cluster: str, path: str = "*") -> Heal:
        """Truncate PD's answers."""
        return self._inject(Fault(Trouble.TRUNCATE, f"{cluster}-pd-*", path=path))

    def pd_no_stores(self, cluster: str) -> Heal:
        """PD lists no stores."""
        return self.pd_answers(cluster, 200, _NO_STORES, path=_STORES, method="GET")

    def pd_old(self, cluster: str, path: str = "*") -> Heal:
        """PD repeats its first answer to such a GET."""
        return self._inject(Fault(Trouble.OLD, f"{cluster}-pd-*", path=path))

    def pd_fickle(self, cluster: str, path: str = "*") -> Heal:
        """Every other call reaches a lagging member, which answers as at the first call."""
        return self._inject(Fault(Trouble.OLD, f"{cluster}-pd-*", path=path, every=2))

    def pd_answer_lost(self, cluster: str, *, path: str = "*", method: str = "*", every: int = 1) -> Heal:
        """PD applies the request, but the connection breaks before the answer."""
        return self._inject(Fault(Trouble.LOSE_ANSWER, f"{cluster}-pd-*", path=path, method=method, every=every))

    def etcd_down(self, cluster: str) -> Heal:
        """PD's keys cannot be read or written."""
        return self._inject(Fault(Trouble.BLACK_HOLE, f"{cluster}-pd-*", path="/v3/*"))

    def regions_frozen(self, cluster: str) -> Heal:
        """Regions and leaders do not move. Raises LookupError if no member of the cluster runs."""
        stores = self._pd(cluster).stores
        stores.frozen = True

        def thaw() -> None:
            stores.frozen = False
            self._data_plane.changed()

        return self._remember(thaw)

    def pd_ctl(self, cluster: str, method: str, path: str, body: Json | None = None, pod: str = "") -> None:
        """Send PD a request as a user with pd-ctl, whatever the answer.

        `{store}` in path and body is replaced by the id of the store of a TiKV or TiFlash pod. Raises LookupError if no
        PD member runs, or the pod has no store.
        """
        store = self._store_of(cluster, pod) if pod else ""
        namespace, _, name = cluster.partition("/")
        url = f"http://{name}-pd.{namespace}:2379/pd/api/v1/{path.replace('{store}', store)}"
        sent = None if body is None else msgspec.json.encode(body).replace(b'"{store}"', store.encode())
        with suppress(TransportError):
            self._data_plane.transport().request(Request(method, url, body=sent))

    def _store_of(self, cluster: str, pod: str) -> str:
        for store in self._pd(cluster).stores.all():
            if store.address.startswith(f"{pod}."):
                return str(store.id)
        raise LookupError(f"no store that PD of {cluster} knows is of pod {pod}")

    def regions_slow(self, cluster: str, peers: float) -> Heal:
        """Limit the peers that a store receives per second. Raises LookupError if no member of the cluster runs."""
        stores = self._pd(cluster).stores
        before, stores.peer_moves = stores.peer_moves, peers

        def as_ever() -> None:
            stores.peer_moves = before
            self._data_plane.changed()

        return self._remember(as_ever)

    def store_low_space(self, cluster: str, store: int) -> Heal:
        """Let a store take no more regions. Raises LookupError if no member of the cluster runs."""
        found = self._pd(cluster).stores.get(store)
        found.low_space = True

        def free() -> None:
            found.low_space = False
            self._data_plane.changed()

        self._data_plane.changed()
        return self._remember(free)

    # the API server

    def api_fault(
        self, fault: ApiFault, user: str = "*", verb: str = "*", resource: str = "*", name: str = "*"
    ) -> Heal:
        """Let matching requests fail. `resource` is `plural.group`, `name` is `namespace/name`; the world's own
        requests are spared.
        """

        def judge(call: Call) -> ApiFault | None:
            asked = ((call.user, user), (call.verb, verb), (call.resource, resource), (_name(call), name))
            return fault if all(fnmatchcase(*each) for each in asked) else None

        self._api.append(judge)
        return self._remember(lambda: _discard(self._api, judge))

    def creation_refused(self, resource: str, name: str = "*", why: str = _OVER_QUOTA) -> Heal:
        """Refuse creation of such objects (`plural.group`), as with an exhausted quota; controllers are not spared."""
        refused = (resource, name, why)
        self._refused.append(refused)

        def allow() -> None:
            if refused in self._refused:
                self._refused.remove(refused)
            self._wake()

        return self._remember(allow)

    def webhook(self, name: str) -> Heal:
        """Let admission change writes (`sandbox.webhooks`) or refuse them (`sandbox.policies`).

        Raises LookupError.
        """
        if name not in (*WEBHOOKS, *POLICIES):
            raise LookupError(f"no webhook {name!r}; there are: {', '.join((*WEBHOOKS, *POLICIES))}")
        webhook = WEBHOOKS[name] if name in WEBHOOKS else POLICIES[name]()
        self._server.webhooks.append(webhook)

        def leave() -> None:
            self._server.webhooks.remove(webhook)

        return self._remember(leave)

    def api_down(self, user: str = "*") -> Heal:
        """Break all connections to the API server, including watches."""
        self._server.disconnect()
        return self.api_fault(ApiFault(lose_request=True), user)

    def api_restart(self, *, expired: bool = False) -> None:
        """Break all watches; with `expired` their versions are too old to continue (410)."""
        if expired:
            self._server.storage.compact()
        self._server.disconnect()

    def _judge(self, call: Call) -> ApiFault | None:
        if self._refused and call.verb == "create" and not call.subresource and (why := self._why_refused(call)):
            return why
        given = self._asked_first(call)
        if given is not None or call.user in self._components:
            return given
        return next((found for found in (judge(call) for judge in self._api) if found is not None), None)

    def _why_refused(self, call: Call) -> ApiFault | None:
        name = _NAMES.decode(call.request.body or b"{}").metadata.get("name", "")
        for resource, glob, why in self._refused:
            if fnmatchcase(call.resource, resource) and fnmatchcase(name, glob):
                what = f'{call.resource} "{name}" is forbidden: {why}'
                return ApiFault(refusal=Refusal(403, "Forbidden", what))
        return None

    def _hold(self, where: MutableSet[str], glob: str) -> Heal:
        where.add(glob)
        self._wake()

        def release() -> None:
            where.discard(glob)
            self._wake()

        return self._remember(release)

    def _inject(self, fault: Fault) -> Heal:
        network = self._data_plane.network
        network.inject(fault)
        return self._remember(lambda: network.heal(fault))

    def _remember(self, heal: Heal) -> Heal:
        self._count += 1
        number = self._count

        def once() -> None:
            if self._active.pop(number, None) is not None:
                heal()

        self._active[number] = once
        return once

    def _wake(self) -> None:
        for topic in (CHANGED, PODS, NODES):
            self._notifier.notify(topic)

    def _pd(self, cluster: str) -> PdCluster:
        namespace, _, name = cluster.partition("/")
        found = self._data_plane.pd_cluster(namespace, name)
        if found is None:
            raise LookupError(f"no member of PD of {cluster} runs")
        return found


def _name(call: Call) -> str:
    return f"{call.namespace}/{call.name}" if call.namespace else call.name


def _discard(judges: list[Faults], judge: Faults) -> None:
    if judge in judges:
        judges.remove(judge)
