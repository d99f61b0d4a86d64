"""The TiDB operator as a process: from its flags to process options and settings of controllers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import structlog

from controller_manager.flags import PROGRAM, Options
from controller_manager.manager import ControllerManager, Server
from controller_manager.observing import PlannedWrites
from controller_manager.process_options import ProcessOptions
from controllers.admission import judges
from controllers.controller import Controller
from controllers.other_operators import OtherOperators, Scope
from controllers.runtime import Runtime
from controllers.wiring import addressed, tidb_controllers
from dataplane.answer_budget import AnswerBudget
from dataplane.clients import DataPlane
from dataplane.grpc_calls import GrpcCalls
from dataplane.http_transport import HttpTransport
from dataplane.mysql import MySqlConnector
from dataplane.read_only import NoGrpc, NoSql, ReadOnlyTransport
from informers.reflector import Reflector, log_watch_error
from informers.selectors import Selector, parse_selector
from kube.client import Client
from kube.config import ClusterConfig
from kube.errors import NotFound
from kube.objects import Object
from kube.resources import TIDB_CLUSTERS
from member.backups.pods import ManagerSettings
from member.context import Dependencies, FailoverSettings, Settings
from ports.clock import Clock
from ports.randomness import Randomness
from ports.side_by_side import Threads

log = structlog.get_logger(__name__)


def tidb_controller_manager(
    options: Options,
    config: ClusterConfig,
    environ: Mapping[str, str],
    clock: Clock,
    randomness: Randomness,
    *,
    planned: PlannedWrites | None = None,
) -> ControllerManager:
    """Assemble the operator's process, without starting or sending anything.

    `planned` receives its writes if it only observes. Raises ConfigError.
    """
    process = process_options_of(options, config)
    report = planned or PlannedWrites()
    manager = ManagerSettings(options.tidb_backup_manager_image, environ.get("TZ", ""), process.namespace)
    wired: list[Dependencies] = []

    def build(runtime: Runtime) -> Sequence[Controller]:
        me = f"{process.lease_namespace}/{process.lease}"
        others = OtherOperators(me, Scope(process.namespace, options.selector), runtime.clock, runtime.recorder)
        if runtime.other_leases is not None:
            others.watch(runtime.other_leases)
        return tidb_controllers(
            runtime,
            _data_plane(_reaching_pods(config, environ), runtime, report, process.observes),
            replace(settings_of(options), backup_manager=manager),
            selector=options.selector,
            permitted=options.permitted,
            others=others,
            on_wired=wired.append,
        )

    def serve(client: Client, is_synced: Callable[[], bool]) -> Server:
        from controller_manager.admission import Gate, Keeper, Webhook  # noqa: PLC0415  (cryptography takes memory)

        keeper = Keeper(client, options.admission_webhook, process.lease_namespace or config.namespace, clock)
        gate = Gate(judges(wired[0], is_synced), partial(_manages, process.namespace, parse_selector(options.selector)))
        return Webhook(gate, keeper, options.admission_webhook_addr)

    return ControllerManager(
        process,
        config,
        environ,
        clock,
        randomness,
        build=build,
        on_watch_error=_explain_watch_error,
        planned=report,
        serve=serve if options.admission_webhook else None,
    )


def _manages(namespace: str, selector: Selector, owner: Object) -> bool:
    return namespace in ("", owner.metadata.namespace) and selector.matches(owner.metadata.labels)


def _reaching_pods(config: ClusterConfig, environ: Mapping[str, str]) -> Mapping[str, str]:
    """The environment with the kubeconfig's proxy for pods, if there is one, in place of all others."""
    if not config.pods_proxy_url:
        return environ
    return {name: each for name, each in environ.items() if not name.lower().endswith("_proxy")} | {
        "ALL_PROXY": config.pods_proxy_url
    }


def _data_plane(
    environ: Mapping[str, str], runtime: Runtime, planned: PlannedWrites, when: Callable[[], bool]
) -> DataPlane:
    record, sql = planned.add_call, MySqlConnector(environ)
    connect = partial(HttpTransport, environ, budget=AnswerBudget())
    return DataPlane(
        lambda tls: ReadOnlyTransport(connect(tls), record, when),
        runtime.fence,
        runtime.clock,
        NoSql(sql, record, when),
        Threads(runtime.timers),
        grpc=NoGrpc(GrpcCalls(environ), record, when),
    )


def process_options_of(options: Options, config: ClusterConfig) -> ProcessOptions:
    """The part of the command line for the process."""
    namespace = options.namespace or config.namespace
    watched = "" if options.cluster_scoped else namespace
    return ProcessOptions(
        name=PROGRAM,
        user_agent="tidb-operator",
        kubeconfig=options.kubeconfig,
        namespace=watched,
        lease_name=options.lease_name,
        lease_namespace=namespace,
        lease_annotations=Scope(watched, options.selector).annotation,
        sees_other_leases=options.cluster_scoped,
        workers=options.workers,
        resync_duration=options.resync_duration,
        kube_client_qps=options.kube_client_qps,
        kube_client_burst=options.kube_client_burst,
        drain_timeout=options.drain_timeout,
        leader_lease_duration=options.leader_lease_duration,
        leader_renew_deadline=options.leader_renew_deadline,
        leader_retry_period=options.leader_retry_period,
        metrics_addr=options.metrics_addr,
        debug_addr=options.debug_addr,
        observe=options.observe,
        shards=options.shards,
        v=options.v,
        instead=addressed(options.features.advanced_stateful_set),
    )


def settings_of(options: Options) -> Settings:
    """The part of the command line for the stages."""
    failover = FailoverSettings(
        auto=options.auto_failover,
        pd_period=options.pd_failover_period,
        tikv_period=options.tikv_failover_period,
        tiflash_period=options.tiflash_failover_period,
        dm_master_period=options.dm_master_failover_period,
        dm_worker_period=options.dm_worker_failover_period,
        tidb_period=options.tidb_failover_period,
        detect_node_failure=options.detect_node_failure,
        pod_hard_recovery_period=options.pod_hard_recovery_period,
    )
    return Settings(
        options.tidb_discovery_image,
        failover,
        replaces_volumes=options.features.volume_replacing,
        modifies_volumes=options.features.volume_modifying,
        advanced_stateful_sets=options.features.advanced_stateful_set,
        references=options.cross_namespace_references,
    )


def _explain_watch_error(reflector: Reflector, error: Exception) -> None:
    """Name the way out of a known error; log any other like every informer."""
    resource = reflector.resource
    if isinstance(error, NotFound) and resource.group == TIDB_CLUSTERS.group:
        log.error(
            f"the {resource.kind} CRD is not installed",
            resource=str(resource),
            install=f"kubectl create -f manifests/crds/{resource.group}_{resource.plural}.yaml",
        )
        return
    log_watch_error(reflector, error)
