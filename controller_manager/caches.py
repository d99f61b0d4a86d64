"""The informers of a process: what it reads of the Kubernetes API and keeps."""

from collections.abc import Iterator

import msgspec
import structlog
from prometheus_client import CollectorRegistry

from controller_manager.process_options import ProcessOptions
from informers.factory import InformerNotStarted, SharedInformerFactory
from informers.metrics import InformerMetrics
from informers.reflector import Reflector, WatchErrorHandler, log_watch_error
from kube.client import Client
from kube.errors import Forbidden
from kube.objects import Object
from kube.resources import Resource
from ports.clock import Clock
from ports.randomness import Randomness
from ports.stopping import Stop

log = structlog.get_logger(__name__)

_HANDLERS_TIMEOUT = 5.0
"""Seconds that the informers of a process, and their handlers, may take to end; more would cost the clean end."""


class Caches:
    """A factory for each label selector, one for the Leases of operators in other namespaces, one for Secrets.

    No reconcile waits for the last two, since not every operator may list what they list.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        randomness: Randomness,
        options: ProcessOptions,
        lease_namespace: str,
        *,
        registry: CollectorRegistry,
        on_watch_error: WatchErrorHandler,
    ) -> None:
        """Prepare; nothing is read. `on_watch_error` is called after each failed round of an informer."""
        self._client, self._clock, self._randomness = client, clock, randomness
        self._options, self._lease_namespace = options, lease_namespace
        self._metrics, self._on_watch_error = InformerMetrics(registry), on_watch_error
        self._factories: dict[str, SharedInformerFactory] = {}
        self._started = False
        self._other_leases_stop = Stop()
        self.other_leases = self._new_lease_factory() if options.sees_other_leases else None
        self._unseen_secrets_reported = False
        self.secret_metadata = self._new_secret_factory()

    def of(self, selector: str) -> SharedInformerFactory:
        """The caches of what a label selector selects, the same at each call. Raises InformerNotStarted."""
        if selector not in self._factories:
            if self._started:
                raise InformerNotStarted(
                    f"informers of {selector!r} were requested after the start; request them in `build`"
                )
            self._factories[selector] = self._new_factory(selector)
        return self._factories[selector]

    @property
    def factories(self) -> tuple[SharedInformerFactory, ...]:
        """Those that the controllers have asked for."""
        return tuple(self._factories.values())

    def start(self, stop: Stop) -> None:
        """Begin to read, until `stop` is set."""
        self._started = True
        for factory in self.factories:
            factory.start(stop)

    def start_unawaited(self, stop: Stop) -> None:
        """Begin to read what no reconcile waits for, until `stop` is set; Leases until `stop_other_leases`."""
        self.secret_metadata.start(stop)
        if self.other_leases is not None:
            self.other_leases.start(self._other_leases_stop)

    def stop_other_leases(self) -> None:
        """Read them no more."""
        self._other_leases_stop.set()

    def missing_after_sync(self, stop: Stop) -> list[str]:
        """Wait until everything is read, or is not in time; the resources that are not."""
        synced: dict[Resource, bool] = {}
        for factory in self.factories:
            synced |= factory.wait_for_cache_sync(stop)
        return sorted(str(resource) for resource, filled in synced.items() if not filled)

    def unsynced(self) -> str | None:
        """What is not yet read."""
        waiting = [resource for factory in self.factories for resource in factory.unsynced()]
        return f"not yet read: {', '.join(sorted(map(str, waiting)))}" if waiting else None

    def shutdown(self) -> bool:
        """Wait until all have ended that were told to stop; whether they did in time."""
        ended = [factory.shutdown(_HANDLERS_TIMEOUT) for factory in self._all()]
        return all(ended)

    def _all(self) -> Iterator[SharedInformerFactory]:
        yield from self.factories
        yield self.secret_metadata
        if self.other_leases is not None:
            yield self.other_leases

    def _new_factory(self, selector: str) -> SharedInformerFactory:
        return SharedInformerFactory(
            self._client,
            self._clock,
            self._randomness,
            namespace=self._options.namespace,
            default_resync=self._options.resync_duration,
            tweak=lambda selectors: selectors.and_labels(selector),
            metrics=self._metrics,
            on_watch_error=self._on_watch_error,
        )

    def _new_lease_factory(self) -> SharedInformerFactory:
        """The Leases of our name in other namespaces. Nothing waits for them: not everybody may read them.

        Who may not gives up at the first refusal: to ask again and again would cost requests and change nothing.
        """
        mine = f"metadata.name={self._options.lease},metadata.namespace!={self._lease_namespace}"
        return SharedInformerFactory(
            self._client,
            self._clock,
            self._randomness,
            tweak=lambda selectors: selectors.and_fields(mine),
            metrics=self._metrics,
            on_watch_error=self._explain_unseen_leases,
        )

    def _explain_unseen_leases(self, reflector: Reflector, error: Exception) -> None:
        if not isinstance(error, Forbidden):
            log_watch_error(reflector, error)
        elif not self._other_leases_stop.is_set():
            self._other_leases_stop.set()
            log.info("operators in other namespaces go unnoticed: their Leases may not be listed", error=str(error))

    def _new_secret_factory(self) -> SharedInformerFactory:
        """The names and versions of all Secrets that the operator may read, to see when one changes.

        Users' Secrets carry no label of the operator, so none can be selected. The server leaves out what they hold.
        """
        return SharedInformerFactory(
            self._client,
            self._clock,
            self._randomness,
            namespace=self._options.namespace,
            transform=_bare,
            metrics=self._metrics,
            name="secret-metadata",
            metadata_only=True,
            on_watch_error=self._explain_unseen_secrets,
        )

    def _explain_unseen_secrets(self, reflector: Reflector, error: Exception) -> None:
        if not isinstance(error, Forbidden):
            log_watch_error(reflector, error)
        elif not self._unseen_secrets_reported:
            self._unseen_secrets_reported = True
            log.warning(
                "changes of Secrets go unnoticed for up to five minutes: grant the operator list and watch on secrets",
                error=str(error),
            )


def _bare(seen: Object) -> Object:
    """The metadata by which a change is noticed, without labels and annotations.

    Those of a Secret that kubectl has applied hold all that is in it.
    """
    meta = seen.metadata
    kept = {
        "name": meta.name,
        "namespace": meta.namespace,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }
    return Object(msgspec.json.encode({"metadata": kept}), seen.api_version, seen.kind)
