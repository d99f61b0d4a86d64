"""The section `remote_write`: the endpoints to which Prometheus sends its samples (other-resources.md 3.7).

Passwords and certificates are files of the Secret that Prometheus mounts anyway; v1.6 writes passwords into a
ConfigMap, and ignores `tlsConfig`.
"""

from collections.abc import Callable, Iterator, Mapping

from apis import images
from apis.monitor_parts import BasicAuth, QueueConfig, RelabelConfig, RemoteWriteSpec, SecretOrConfigMap, TLSConfig
from apis.monitors import TidbMonitor
from apis.shared import Json
from member.monitor.inputs import Inputs, asset_path
from member.objects.pod import without_unset

SECRET, CONFIG_MAP = "secret", "configmap"

Reference = tuple[str, str, str]
"""`secret` or `configmap`, the object's name, and the key in it."""


def references(monitor: TidbMonitor) -> Iterator[Reference]:
    """The keys of Secrets and ConfigMaps that become files for Prometheus."""
    for each in monitor.spec.prometheus.remote_write:
        if each.basic_auth is not None:
            yield SECRET, each.basic_auth.password["name"], each.basic_auth.password["key"]
        if each.tls_config is not None:
            yield from _files_of(each.tls_config).values()


def users(monitor: TidbMonitor) -> Iterator[tuple[str, str]]:
    """The Secrets and keys with the names of users."""
    for each in monitor.spec.prometheus.remote_write:
        if each.basic_auth is not None:
            yield each.basic_auth.username["name"], each.basic_auth.username["key"]


def remote_write(monitor: TidbMonitor, inputs: Inputs) -> list[Json]:
    """The endpoints, without settings that the version of Prometheus does not support."""
    namespace, version = monitor.metadata.namespace, monitor.spec.prometheus.version

    def path(reference: Reference) -> str:
        kind, name, key = reference
        return asset_path(namespace, name, key, kind)

    return [
        _endpoint(each, inputs, lambda since: images.at_least(version, since), path)
        for each in monitor.spec.prometheus.remote_write
    ]


def _endpoint(
    each: RemoteWriteSpec, inputs: Inputs, knows: Callable[[str], bool], path: Callable[[Reference], str]
) -> Json:
    metadata = each.metadata_config
    entry: Json = {"url": each.url, "remote_timeout": each.remote_timeout or "30s"}
    if knows("2.25.0"):
        entry |= {"headers": dict(sorted(each.headers.items())), "name": each.name}
    entry |= {
        "write_relabel_configs": [_relabel(rule) for rule in each.write_relabel_configs],
        "basic_auth": each.basic_auth and _basic_auth(each.basic_auth, inputs, path),
        "bearer_token": each.bearer_token,
        "bearer_token_file": each.bearer_token_file,
        "tls_config": each.tls_config and _tls(each.tls_config, path),
        "proxy_url": each.proxy_url,
        "queue_config": each.queue_config and _queue(each.queue_config, is_new=knows("2.6.0")),
    }
    if metadata is not None and knows("2.23.0"):
        entry["metadata_config"] = {"send": metadata.send} | without_unset({"send_interval": metadata.send_interval})
    return without_unset(entry)


def _relabel(rule: RelabelConfig) -> Json:
    return without_unset(
        {
            "source_labels": rule.source_labels,
            "separator": rule.separator,
            "target_label": rule.target_label,
            "regex": rule.regex,
            "modulus": rule.modulus or None,
            "replacement": rule.replacement,
            "action": rule.action,
        }
    )


def _basic_auth(auth: BasicAuth, inputs: Inputs, path: Callable[[Reference], str]) -> Json:
    user, password = auth.username, auth.password
    return {
        "username": inputs.users.get((user["name"], user["key"]), ""),
        "password_file": path((SECRET, password["name"], password["key"])),
    }


def _tls(tls: TLSConfig, path: Callable[[Reference], str]) -> Json:
    given = {"ca_file": tls.ca_file, "cert_file": tls.cert_file, "key_file": tls.key_file}
    referenced = {field: path(reference) for field, reference in _files_of(tls).items()}
    more = {"server_name": tls.server_name, "insecure_skip_verify": tls.insecure_skip_verify or None}
    return without_unset({**given, **referenced, **more})


def _files_of(tls: TLSConfig) -> Mapping[str, Reference]:
    key = SecretOrConfigMap(secret=tls.key_secret)
    chosen = {"ca_file": _chosen(tls.ca), "cert_file": _chosen(tls.cert), "key_file": _chosen(key)}
    return {field: reference for field, reference in chosen.items() if reference is not None}


def _chosen(source: SecretOrConfigMap) -> Reference | None:
    kind, selector = (SECRET, source.secret) if source.secret else (CONFIG_MAP, source.config_map)
    return (kind, selector["name"], selector["key"]) if selector else None


def _queue(queue: QueueConfig, *, is_new: bool) -> Json:
    return without_unset(
        {
            "capacity": queue.capacity or None,
            "min_shards": (queue.min_shards or None) if is_new else None,
            "max_shards": queue.max_shards or None,
            "max_samples_per_send": queue.max_samples_per_send or None,
            "batch_send_deadline": _duration(queue.batch_send_deadline),
            "max_retries": queue.max_retries or None,
            "min_backoff": _duration(queue.min_backoff),
            "max_backoff": _duration(queue.max_backoff),
        }
    )


def _duration(nanoseconds: int | None) -> str:
    """The duration in milliseconds, Prometheus' finest unit; empty for None."""
    if nanoseconds is None:
        return ""
    return f"{-(-nanoseconds // 1_000_000)}ms"
