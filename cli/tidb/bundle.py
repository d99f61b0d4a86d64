"""`kubectl tidb report`: objects, events and logs of a cluster in one file for support, without secrets and addresses.

The command reads no Secret. It replaces values under secret names and texts that look like secrets, as the operator's
log does, and each IP address by a number, the same one everywhere in the file.
"""

import argparse
import io
import os
import re
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import msgspec
import yaml

from apis.times import stamp
from cli.failures import Failure
from cli.tidb.clusters import Found, find_cluster
from cli.tidb.command import Command
from cli.tidb.log_lines import lines
from cli.tidb.output import Page
from cli.tidb.pods import ClusterPod, of_instances, pods_among
from cli.tidb.session import Session
from cli.tidb.status.facts import Facts, attempt
from cli.tidb.status.report import Unread
from cli.tidb.status.reporting import report_of
from controller_manager.redaction import redact_text, redacted
from kube import resources
from kube.client import Client
from kube.errors import ApiError
from kube.objects import Json, Object
from kube.resources import Resource
from ports.foreign_text import printable
from ports.transport import TransportError

_LABELLED = (
    *(resources.STATEFUL_SETS, resources.ADVANCED_STATEFUL_SETS, resources.DEPLOYMENTS),
    *(resources.PODS, resources.PERSISTENT_VOLUME_CLAIMS),
    *(resources.SERVICES, resources.CONFIG_MAPS, resources.JOBS, resources.INGRESSES),
)
"""The kinds whose objects carry the cluster's name in a label."""

_NAMING = (
    *(resources.BACKUPS, resources.RESTORES, resources.BACKUP_SCHEDULES, resources.COMPACT_BACKUPS),
    *(resources.TIDB_MONITORS, resources.TIDB_INITIALIZERS, resources.TIDB_DASHBOARDS),
    resources.TIDB_NG_MONITORINGS,
)
"""The kinds whose objects name a cluster in their spec."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_INDEX = "index.txt"
_LINES = 1000
_LONGEST_LOG = 5 * 2**20
"""Bytes of a log."""

_ADDRESS = re.compile(r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}(?!\d)|[0-9A-Fa-f:]{3,39}(?![\w:]))")
_ADDRESS_IN_NAME = re.compile(r"\bip(?:-\d{1,3}){4}\b")

Listed = Mapping[Resource, Sequence[Object]]
"""The objects of the cluster's namespace by kind, as far as the user may read them."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cluster", metavar="CLUSTER", help="NAME, tc/NAME or dc/NAME")
    parser.add_argument("--file", metavar="FILE", help="where to write it (default: CLUSTER-report-TIME.tar.gz)")
    parser.add_argument("--tail", type=int, default=_LINES, metavar="N", help=f"the last lines of each log ({_LINES})")


def _run(session: Session, given: argparse.Namespace, _: Sequence[str]) -> int:
    now = session.clock.wall()
    found = find_cluster(session.client, session.namespace, given.cluster)
    path = Path(given.file or f"{found.object.metadata.name}-report-{re.sub('[-:]', '', stamp(now))}.tar.gz")
    try:
        # only this user may read it: it holds what he may read in the cluster
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise Failure(f"{path} exists: name another one with --file") from None
    try:
        with os.fdopen(file, "wb") as out, tarfile.open(fileobj=out, mode="w:gz") as archive:
            bundle = _Bundle(session.client, found, archive, now.timestamp())
            bundle.collect(given.tail)
    except BaseException:
        path.unlink()
        raise
    document: Json = {"file": str(path), "contains": bundle.names, "unread": msgspec.to_builtins(bundle.unread)}
    session.output.show(document, lambda: _page(document))
    return 0


def _page(document: Json) -> Page:
    yield f"{document['file']} has {len(document['contains'])} files; {_INDEX} lists them"
    for each in document["unread"]:
        yield f"not in it: {each['what']}: {each['why']}"
    yield "No Secret was read. Values that look like secrets, and IP addresses, are replaced; look before you send it."


@dataclass(slots=True)
class _Bundle:
    """An archive that grows. `names` are its files, `unread` is what the user may not read."""

    client: Client
    found: Found
    archive: tarfile.TarFile
    time: float
    names: list[str] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    _addresses: dict[str, str] = field(default_factory=dict)

    def collect(self, tail: int) -> None:
        """Add everything, with the last `tail` lines of each log. Raises ApiError, TransportError."""
        of_cluster = of_instances(self.found.cluster)
        listed = {each: self._list(each, of_cluster) for each in _LABELLED}
        listed |= {each: self._list(each) for each in (*_NAMING, resources.EVENTS)}
        facts = self._facts(listed)
        self._add_tree("status.yaml", msgspec.to_builtins(report_of(facts)))
        objects = list(self._objects(listed))
        for resource, tree in objects:
            self._add_tree(f"objects/{resource.plural}/{tree['metadata']['name']}.yaml", _without_noise(tree))
        uids = {tree["metadata"]["uid"] for _, tree in objects}
        events = [each for each in _trees(listed, resources.EVENTS) if each["involvedObject"].get("uid") in uids]
        self._add_tree("events.yaml", list(map(_without_noise, events)))
        for pod in facts.pods:
            self._add_logs(pod, tail)
        self.unread = [Unread(*map(self._without_addresses, (unread.what, unread.why))) for unread in self.unread]
        missing = [f"not in it: {unread.what}: {unread.why}" for unread in self.unread]
        self._add(_INDEX, "\n".join([*self.names, *missing, "not in it: Secrets, and the operator's own log", ""]))

    def _facts(self, listed: Listed) -> Facts:
        """What the status is made from."""
        uid, of = self.found.object.metadata.uid, partial(_trees, listed)
        return Facts(
            self.found,
            pods=pods_among(listed[resources.PODS], self.found.cluster),
            events=[each for each in of(resources.EVENTS) if each["involvedObject"].get("uid") == uid],
            backups=of(resources.BACKUPS),
            schedules=of(resources.BACKUP_SCHEDULES),
            monitors=of(resources.TIDB_MONITORS),
            unread=list(self.unread),
        )

    def _objects(self, listed: Listed) -> Iterator[tuple[Resource, Json]]:
        """The cluster, what carries its label, what names it, and the volumes and nodes of its pods."""
        yield self.found.resource, self.found.object.decode()
        for resource in _LABELLED:
            yield from ((resource, obj.decode()) for obj in listed[resource])
        for resource in _NAMING:
            trees = (obj.decode() for obj in listed[resource])
            yield from (
                (resource, tree) for tree in trees if _mentions(tree.get("spec"), self.found.object.metadata.name)
            )
        volumes = {obj.decode()["spec"].get("volumeName") for obj in listed[resources.PERSISTENT_VOLUME_CLAIMS]}
        nodes = {obj.decode()["spec"].get("nodeName") for obj in listed[resources.PODS]}
        for resource, names in ((resources.PERSISTENT_VOLUMES, volumes), (resources.NODES, nodes)):
            for name in sorted(filter(None, names)):
                get = partial(self.client.get, resource, name)
                read = attempt(self.unread, f"{resource.plural}/{name}", get, "read")
                if read is not None:
                    yield resource, read.decode()

    def _list(self, resource: Resource, selector: str = "") -> Sequence[Object]:
        namespace = self.found.object.metadata.namespace
        page = attempt(
            self.unread,
            resource.plural,
            lambda: self.client.list_page(resource, namespace, label_selector=selector),
            "read",
        )
        return page.items if page else ()

    def _add_logs(self, pod: ClusterPod, tail: int) -> None:
        """The log of each container of a pod, and of its run before a restart."""
        status = pod.pod.status
        restarted = {
            container.name
            for container in (*status.init_container_statuses, *status.container_statuses)
            if container.restart_count
        }
        spec = pod.object.decode()["spec"]
        for name in [each["name"] for each in (*(spec.get("initContainers") or ()), *spec["containers"])]:
            self._add_log(pod, f"{name}.log", {"container": name}, tail)
            if name in restarted:
                self._add_log(pod, f"{name}.previous.log", {"container": name, "previous": "true"}, tail)

    def _add_log(self, pod: ClusterPod, name: str, options: Mapping[str, str], tail: int) -> None:
        """A log as far as it can be read: the kubelet of a lost node does not answer."""
        meta, path = pod.object.metadata, f"logs/{pod.name}/{name}"
        limits = {"tailLines": str(tail), "limitBytes": str(_LONGEST_LOG)}
        read: list[str] = []
        try:
            with closing(self.client.log(meta.name, meta.namespace, **options, **limits)) as stream:
                read.extend(f"{printable(redact_text(line))}\n" for line in lines(stream))
        except (ApiError, TransportError) as error:
            self.unread.append(Unread(path, str(error)))
            if not read:
                return
        self._add(path, "".join(read))

    def _add_tree(self, name: str, tree: Any) -> None:
        self._add(name, yaml.safe_dump(redacted(tree), sort_keys=False, allow_unicode=True))

    def _add(self, name: str, text: str) -> None:
        # nodes may be named after their addresses, and files after nodes
        name, content = self._without_addresses(name), self._without_addresses(text).encode()
        entry = tarfile.TarInfo(name)
        entry.size, entry.mtime = len(content), int(self.time)
        self.archive.addfile(entry, io.BytesIO(content))
        self.names.append(name)

    def _without_addresses(self, text: str) -> str:
        """`text` with a number for each IP address, also in names of nodes; loopback addresses stay."""
        return _ADDRESS_IN_NAME.sub(self._numbered, _ADDRESS.sub(self._numbered_address, text))

    def _numbered_address(self, found: re.Match[str]) -> str:
        try:
            address = ip_address(found[0])
        except ValueError:
            return found[0]
        return found[0] if address.is_loopback or address.is_unspecified else self._numbered(found)

    def _numbered(self, found: re.Match[str]) -> str:
        return self._addresses.setdefault(found[0], f"address-{len(self._addresses) + 1}")


def _trees(listed: Listed, resource: Resource) -> list[Json]:
    return [obj.decode() for obj in listed[resource]]


def _without_noise(tree: Json) -> Json:
    """An object without the parts of its metadata that repeat its content."""
    meta = {name: value for name, value in tree["metadata"].items() if name != "managedFields"}
    if annotations := meta.get("annotations"):
        meta["annotations"] = {name: value for name, value in annotations.items() if name != _LAST_APPLIED}
    return tree | {"metadata": meta}


def _mentions(tree: Any, name: str) -> bool:
    """True if a value in `tree` equals `name`."""
    match tree:
        case Mapping():
            return any(_mentions(each, name) for each in tree.values())
        case list():
            return any(_mentions(each, name) for each in tree)
        case _:
            return bool(tree == name)


REPORT = Command(_run, _add_arguments, "It reads no Secret.")
