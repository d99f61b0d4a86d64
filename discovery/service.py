"""Discovery's answers (objects.md 10.3, 10.5). `bootstrap` has the argument why no cluster begins twice."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import structlog

from apis.identity import is_abandoned, scheme
from apis.tidbcluster import TidbCluster
from dataplane.addresses import PD_CLIENT_PORT, PD_PEER_PORT, Address, without_path
from dataplane.errors import DataPlaneError, Unavailable
from dataplane.pd import Member, Membership
from discovery.askers import Askers
from discovery.asking import (
    Asker,
    Refused,
    address_book,
    asker,
    pd_services,
    question,
    verified,
)
from discovery.bootstrap import Claims, Evidence, desired_pods, is_ordered, leaving, obstacle, others_first
from discovery.memory import Memory
from kube.errors import ApiError, NotFound
from ports.clock import Clock
from ports.transport import ConnectionRefused, RequestTimeout, TransportError

_log = structlog.get_logger(__name__)

_BUDGET = 2.4
"""Seconds after the arrival of a question within which members are read; scripts wait three for their answer."""

_LONGEST_READ = 1.0


class Clusters(Claims, Askers, Protocol):
    """Reads TidbClusters, their pods and their claims."""

    def get(self, namespace: str, name: str) -> TidbCluster:
        """The current cluster. Raises kube.errors.ApiError, TransportError."""

    def claimed(self, tc: TidbCluster) -> frozenset[str]:
        """The ids of the PD clusters whose data is in the volume claims. Raises like `get`."""


class Members(Protocol):
    """Reads PD's members."""

    def members(self, tc: TidbCluster, url: Address, timeout: float) -> Membership:
        """The members that the PD of `tc` at `url` lists within `timeout` seconds. Raises DataPlaneError."""


@dataclass(frozen=True, slots=True)
class _View:
    """The result of reading PD's members: the members, or the reason for their absence."""

    membership: Membership | None = None
    alive: str = ""
    failures: tuple[str, ...] = ()


class Discovery:
    """Answers the start scripts of one namespace. Thread-safe.

    Reads happen outside the lock, so that a slow PD delays no other caller. This is safe: a question proves the state
    at its arrival, and nothing once its pod has an answer; an answer that comes too late reaches no pod.
    """

    def __init__(self, clusters: Clusters, members: Members, clock: Clock, namespace: str) -> None:
        self._clusters = clusters
        self._members = members
        self._clock = clock
        self._namespace = namespace
        self._lock = threading.Lock()
        self._memories: dict[str, Memory] = {}

    def new(self, advertise_peer_url: str, source: str) -> str:
        """The flag for starting the PD that advertises an address: `--join=...` or `--initial-cluster=...`.

        `source` is the IP address of the request. Raises Refused, kube.errors.ApiError, TransportError.
        """
        pod = asker(advertise_peer_url, self._namespace)
        arrived = self._clock.now()
        tc = self._clusters.get(pod.namespace, pod.cluster)
        deadline = arrived + _BUDGET
        view = self._look(tc, pd_services(tc), deadline)
        if view.membership is not None:
            return self._join(tc, pod, view.membership)
        if tc.spec.pd_addresses and tc.spec.cluster is None:
            return self._join_given(tc, pod)
        if doubt := self._clusters.doubt(pod.namespace, f"{pod.cluster}-pd", pod.pod, source):
            raise Refused("; ".join([doubt, *view.failures]))
        self._remember_question(tc, pod, arrived)
        return self._begin(tc, pod, view, deadline)

    def verify(self, pd_url: str) -> str:
        """The addresses of PD for a TiKV or TiDB of the cluster, comma-separated.

        If the cluster cannot be read, returns the argument, which is right for all but heterogeneous clusters. Raises
        Refused; NotFound if there is no such cluster.
        """
        url = pd_url.strip()
        asked = question(url)
        try:
            tc = self._clusters.get(self._namespace, asked.cluster)
        except NotFound:
            raise
        except (ApiError, TransportError) as error:
            _log.warning("cannot read the TidbCluster, returning the address unverified", pd_url=url, error=str(error))
            return url
        return verified(tc, asked, url)

    def _remember_question(self, tc: TidbCluster, pod: Asker, arrived: float) -> None:
        with self._lock:
            self._memory(tc).note_question(pod.pod, arrived)

    def _memory(self, tc: TidbCluster) -> Memory:
        """The memory of this cluster; a recreated cluster with the same name starts with an empty one."""
        memory = self._memories.get(tc.metadata.name)
        if memory is None or memory.uid != tc.metadata.uid:
            memory = self._memories[tc.metadata.name] = Memory(tc.metadata.uid)
        return memory

    def _look(self, tc: TidbCluster, urls: Iterable[Address], deadline: float) -> _View:
        """Try the URLs in turn until one lists its members."""
        failures: list[str] = []
        alive = ""
        for url in urls:
            try:
                return _View(self._read(tc, url, deadline))
            except DataPlaneError as error:
                failures.append(str(error))
                alive = alive or _sign_of_life(error)
        return _View(alive=alive, failures=tuple(failures))

    def _read(self, tc: TidbCluster, url: Address, deadline: float) -> Membership:
        left = deadline - self._clock.now()
        if left <= 0:
            cause = RequestTimeout("GET", url, "not sent: no time left")
            raise Unavailable("GET", url, cause.cause, cause)
        return self._members.members(tc, url, min(left, _LONGEST_READ))

    def _join(self, tc: TidbCluster, pod: Asker, found: Membership) -> str:
        known = tc.status.cluster_id
        if known and found.cluster_id and known != str(found.cluster_id) and not is_abandoned(tc):
            raise Refused(f"PD reports cluster id {found.cluster_id}, but this cluster is {known}")
        others = [member for member in found.members if _can_be_joined_through(member, pod)]
        if not others:
            raise Refused(f"PD lists no member other than {pod.pod} itself")
        urls = [url for member in others if (url := without_path(_client_url(member), scheme(tc)))]
        if not urls:
            raise Refused(f"PD lists {len(others)} other members, none of which announces a URL with a host and a port")
        if reason := leaving(tc, pod.pod, desired_pods(tc), self._clusters):
            raise Refused(reason)
        self._remember_answer(tc, pod)
        return f"--join={','.join(urls)}"

    def _join_given(self, tc: TidbCluster, pod: Asker) -> str:
        first = desired_pods(tc)[:1]
        if pod.pod not in first:
            raise Refused(f"waiting for {' '.join(first) or 'the first pod'} to join spec.pdAddresses before {pod.pod}")
        self._remember_answer(tc, pod)
        return f"--join={','.join(tc.spec.pd_addresses)}"

    def _begin(self, tc: TidbCluster, pod: Asker, view: _View, deadline: float) -> str:
        pods = desired_pods(tc)
        present = self._present(tc, pods[1:], deadline) if pod.pod in pods[:1] else {}

        def evidence(claimed: frozenset[str] = frozenset()) -> Evidence:
            memory = self._memory(tc)
            return Evidence(memory.empty(self._clock.now()), present, view.alive, memory.bootstrapping, claimed)

        with self._lock:
            known = evidence()
            reason = obstacle(tc, pod, pods, known) if others_first(tc, pod, pods, known) else ""
        if not reason:
            # read last: a namespace has many claims, and pods ask every second until they may start
            claimed = self._clusters.claimed(tc)
            with self._lock:
                reason = obstacle(tc, pod, pods, evidence(claimed))
                if not reason:
                    self._memory(tc).note_beginning(pod.pod, self._clock.now())
        if reason:
            raise Refused("; ".join([reason, *view.failures]))
        long_name = tc.spec.across_k8s or tc.spec.cluster_domain
        return f"--initial-cluster={pod.host if long_name else pod.pod}={scheme(tc)}://{pod.address}"

    def _present(self, tc: TidbCluster, pods: list[str], deadline: float) -> dict[str, str]:
        """The pods that show signs of life at their own addresses; probed only if pods start one by one."""
        if not is_ordered(tc):
            return {}
        book = address_book(tc)
        present: dict[str, str] = {}
        for pod in pods:
            url = book.pd_member(int(pod.rpartition("-")[2]))
            try:
                self._read(tc, url, deadline)
                present[pod] = "it answers"
            except DataPlaneError as error:
                if not _is_absence(error):
                    present[pod] = str(error)
        return present

    def _remember_answer(self, tc: TidbCluster, pod: Asker) -> None:
        with self._lock:
            self._memory(tc).note_answer(pod.pod, self._clock.now())


def _is_absence(error: DataPlaneError) -> bool:
    return isinstance(error, Unavailable) and isinstance(error.cause, ConnectionRefused)


def _sign_of_life(error: DataPlaneError) -> str:
    """The sign of life in an error; empty for silence.

    A Service without endpoints may drop packets instead of refusing connections, so silence proves nothing.
    """
    silent = isinstance(error, Unavailable) and isinstance(error.cause, ConnectionRefused | RequestTimeout)
    return "" if silent else str(error)


def _can_be_joined_through(member: Member, pod: Asker) -> bool:
    """True if the member has started and is not the asking pod, by name or address."""
    if not member.name or not member.peer_urls or member.name in (pod.pod, pod.host):
        return False
    return member.peer_urls[0].rpartition("://")[2] != pod.address


def _client_url(member: Member) -> str:
    return member.peer_urls[0].replace(f":{PD_PEER_PORT}", f":{PD_CLIENT_PORT}")
