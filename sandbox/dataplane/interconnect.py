"""What joins the networks of several Kubernetes clusters (objects.md 8): routes between pods, and names of each other.

A pod is reached from everywhere under the domain of its Kubernetes. Addresses of Services mean nothing elsewhere: from
another Kubernetes only the pods behind a headless Service are found.
"""

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandbox.dataplane.network import Network


class Interconnect:
    """The networks that are joined, by the domain of their Kubernetes. Safe for use by many threads."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """The data plane's: processes of all Kubernetes share the state of the clusters that they are members of."""
        self._networks: dict[str, Network] = {}
        self._cut_off: set[str] = set()
        self.disturbances = 0
        """Grows with everything that lets processes reach each other or not, other than their own start and end."""

    def add(self, domain: str, network: "Network") -> None:
        """A Kubernetes is joined. Raises ValueError when another one has its domain."""
        if domain in self._networks:
            raise ValueError(f"two Kubernetes clusters have the domain {domain!r}; give each its own")
        self._networks[domain] = network

    def networks(self, *domains: str) -> "list[Network]":
        """Those of some domains, each once."""
        return [self._networks[each] for each in dict.fromkeys(domains) if each in self._networks]

    def behind(self, host: str, own: str) -> "Network | None":
        """The network that a name is in; None for names under a domain that no other Kubernetes than `own` has."""
        _, _, domain = host.lower().rstrip(".").partition(".svc.")
        return self._networks.get(domain) if domain != own else None

    def cut_off(self, domain: str, apart: bool) -> None:
        """A fault: nothing goes from this Kubernetes to others, nor back; or take that fault back."""
        if apart:
            self._cut_off.add(domain)
        else:
            self._cut_off.discard(domain)
        self.disturbed()

    def is_severed(self, one: str, other: str) -> bool:
        """Whether two Kubernetes cannot reach each other."""
        return one != other and not self._cut_off.isdisjoint((one, other))

    def disturbed(self) -> None:
        """Somebody may reach others, or be reached, who could not before, or the other way round."""
        with self.lock:
            self.disturbances += 1
        self.changed()

    def changed(self) -> None:
        """Wake all data planes: what happens in one may be seen in another."""
        for each in self._networks.values():
            each.wake()
