"""Lists and watches of one resource with a namespace and selectors (informers-workqueue.md LW-1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kube.client import METADATA_KIND, Client, ListPage, OnReceived, Watch
from kube.resources import Resource


@dataclass(frozen=True, slots=True)
class Selectors:
    """The options that a tweak may change; versions, bookmarks and `watch` are not among them."""

    labels: str = ""
    fields: str = ""

    def and_labels(self, selector: str) -> "Selectors":
        """These selectors with a further requirement on labels, joined by a comma (FAC-7)."""
        return replace(self, labels=",".join(filter(None, (self.labels, selector))))

    def and_fields(self, selector: str) -> "Selectors":
        """These selectors with a further requirement on fields."""
        return replace(self, fields=",".join(filter(None, (self.fields, selector))))


@dataclass(frozen=True, slots=True)
class ListWatch:
    """Lists and watches one resource with the same selectors. An empty `namespace` means all namespaces.

    With `metadata_only` the server sends only metadata (INF-50).
    """

    client: Client
    resource: Resource
    namespace: str = ""
    selectors: Selectors = Selectors()
    tweak: Callable[[Selectors], Selectors] | None = None
    metadata_only: bool = False

    @property
    def kind(self) -> str:
        """The kind of the objects that the server sends."""
        return METADATA_KIND if self.metadata_only else self.resource.kind

    def list_page(
        self,
        *,
        resource_version: str,
        resource_version_match: str = "",
        limit: int = 0,
        continue_token: str = "",
        on_received: OnReceived = lambda: None,
    ) -> ListPage:
        """One page of the list. Raises ApiError, TransportError."""
        selectors = self._tweaked()
        return self.client.list_page(
            self.resource,
            self.namespace,
            label_selector=selectors.labels,
            field_selector=selectors.fields,
            resource_version=resource_version,
            resource_version_match=resource_version_match,
            limit=limit,
            continue_token=continue_token,
            metadata_only=self.metadata_only,
            on_received=on_received,
        )

    def watch(
        self,
        *,
        resource_version: str,
        timeout_seconds: int,
        options: Mapping[str, str] | None = None,
        silence: float | None = None,
    ) -> Watch:
        """Open a watch with bookmarks (REF-20). Raises ApiError, TransportError."""
        selectors = self._tweaked()
        return self.client.watch(
            self.resource,
            self.namespace,
            resource_version=resource_version,
            timeout_seconds=timeout_seconds,
            label_selector=selectors.labels,
            field_selector=selectors.fields,
            options=options,
            silence=silence,
            metadata_only=self.metadata_only,
        )

    def _tweaked(self) -> Selectors:
        return self.tweak(self.selectors) if self.tweak else self.selectors
