"""The informers of a process: the part of the Kubernetes API that it caches."""

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
"""Seconds that the informers and their handlers have to end; more would endanger the orderly shutdown."""


class Caches:
    """A factory for each label selector, one for the Leases of operators in other namespaces, one for Secrets.

    Reconciles do not wait for the last two, because not every operator may list these resources.
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
        """Prepare, without reads. `on_watch_error` is called after each failed round of an informer."""
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
        """The caches of a label selector, always the same. Raises InformerNotStarted."""
        if selector not in self._factories:
            if self._started:
                raise InformerNotStarted(
                    f"informers of {selector!r} were requested after the start; request them in `build`"
                )
            self._factories[selector] = self._new_factory(selector)
        return self._factories[selector]

    @property
    def factories(self) -> tuple[SharedInformerFactory, ...]:
        """The factories that the controllers use."""
        return tuple(self._factories.values())

    def start(self, stop: Stop) -> None:
        """Start the informers, until `stop` is set."""
        self._started = True
        for factory in self.factories:
            factory.start(stop)

    def start_unawaited(self, stop: Stop) -> None:
        """Start the informers that no reconcile waits for, until `stop` is set; Leases until `stop_other_leases`."""
        self.secret_metadata.start(stop)
        if self.other_leases is not None:
            self.other_leases.start(self._other_leases_stop)

    def stop_other_leases(self) -> None:
        """Stop the informer of other operators' Leases."""
        self._other_leases_stop.set()

    def missing_after_sync(self, stop: Stop) -> list[str]:
        """Wait until all caches have synced, or the time is over; return the resources that have not."""
        synced: dict[Resource, bool] = {}
        for factory in self.factories:
            synced |= factory.wait_for_cache_sync(stop)
        return sorted(str(resource) for resource, filled in synced.items() if not filled)

    def unsynced(self) -> str | None:
        """The resources that have not synced yet."""
        waiting = [resource for factory in self.factories for resource in factory.unsynced()]
        return f"not yet read: {', '.join(sorted(map(str, waiting)))}" if waiting else None

    def shutdown(self) -> bool:
        """Wait until all stopped informers have ended; True if they did in time."""
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
        """The Leases with this name in other namespaces. No reconcile waits for them, because not every operator may
        list them.

        The informer gives up at the first refusal, because retries would only cost requests.
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
        """Names and versions of all Secrets that the operator may list, to notice changes.

        Users' Secrets have no label of the operator to select by. The server omits their content.
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
    """The metadata that shows a change, without labels and annotations.

    The annotations of a Secret that kubectl applied contain its content.
    """
    meta = seen.metadata
    kept = {
        "name": meta.name,
        "namespace": meta.namespace,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }
    return Object(msgspec.json.encode({"metadata": kept}), seen.api_version, seen.kind)
