"""The connection of several Kubernetes clusters' networks (objects.md 8): routes between pods, and DNS.

A pod is reachable from everywhere under the domain of its Kubernetes. Addresses of Services are local: from another
Kubernetes only the pods behind a headless Service can be found.
"""

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.dataplane.network import Network


class Interconnect:
    """The connected networks, by the domain of their Kubernetes. Thread-safe."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """The data plane's lock: processes of all Kubernetes share the state of their clusters."""
        self._networks: dict[str, Network] = {}
        self._cut_off: set[str] = set()
        self.disturbances = 0
        """Grows with every event that changes who can reach whom, except the start and end of processes."""

    def add(self, domain: str, network: "Network") -> None:
        """Connect a Kubernetes. Raises ValueError if its domain is taken."""
        if domain in self._networks:
            raise ValueError(f"two Kubernetes clusters have the domain {domain!r}; give each its own")
        self._networks[domain] = network

    def networks(self, *domains: str) -> "list[Network]":
        """The networks of the given domains, without duplicates."""
        return [self._networks[each] for each in dict.fromkeys(domains) if each in self._networks]

    def behind(self, host: str, own: str) -> "Network | None":
        """The network of a name; None for a name under no domain of a Kubernetes other than `own`."""
        _, _, domain = host.lower().rstrip(".").partition(".svc.")
        return self._networks.get(domain) if domain != own else None

    def cut_off(self, domain: str, apart: bool) -> None:
        """A fault: separate this Kubernetes from all others, or end the fault."""
        if apart:
            self._cut_off.add(domain)
        else:
            self._cut_off.discard(domain)
        self.disturbed()

    def is_severed(self, one: str, other: str) -> bool:
        """True if two Kubernetes cannot reach each other."""
        return one != other and not self._cut_off.isdisjoint((one, other))

    def disturbed(self) -> None:
        """Record that reachability may have changed."""
        with self.lock:
            self.disturbances += 1
        self.changed()

    def changed(self) -> None:
        """Wake all data planes: an event in one may be visible in another."""
        for network in self._networks.values():
            network.wake()
