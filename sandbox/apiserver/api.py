"""The verbs of resources: from a target and a request to an answer or a watch."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, SERVICE_ACCOUNTS, SERVICES, Resource
from ports.transport import Request, Response
from sandbox.apiserver import (
    applying,
    definitions,
    negotiation,
    patching,
    presentation,
    reads,
    schemas,
    subresources,
    tables,
)
from sandbox.apiserver.admission import FieldCheck
from sandbox.apiserver.answers import bytes_answer, json_answer, with_warnings
from sandbox.apiserver.deletion import DELETE_OPTIONS, DeleteOptions, Deletion, parse_options
from sandbox.apiserver.kinds import Kind
from sandbox.apiserver.negotiation import Form
from sandbox.apiserver.refusals import (
    Refusal,
    bad_request,
    invalid,
    method_not_allowed,
    not_found,
    required,
    unsupported,
    unsupported_media_type,
)
from sandbox.apiserver.routes import Target, number
from sandbox.apiserver.storage import Stored
from sandbox.apiserver.watching import WatchPlan, WatchStream, bookmark_object
from sandbox.apiserver.world import World
from sandbox.apiserver.writes import WriteOptions, Writes

_FIELD_MODES = ("Ignore", "Warn", "Strict")
_WRITE_OPTIONS = {
    verb: Resource("meta.k8s.io", "v1", "", f"{verb.capitalize()}Options") for verb in ("create", "update", "patch")
}
_SHOWN_WHEN_DELETED = (PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, SERVICE_ACCOUNTS)
_DEFAULT_WATCH_TIMEOUT = 1800
"""The duration of a watch without a timeout in seconds."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request for a resource: target, query, body and headers."""

    verb: str
    target: Target
    query: Mapping[str, str]
    request: Request
    idle_timeout: float | None = None

    @property
    def form(self) -> Form:
        """The form of the answer. Raises Refusal (406)."""
        return negotiation.form(self.request.headers.get("accept", ""))

    def options(self) -> WriteOptions:
        """The options of a write. Raises Refusal (422)."""
        dry_run, mode = self.query.get("dryRun", ""), self.query.get("fieldValidation") or "Warn"
        errors = []
        if dry_run not in ("", "All"):
            errors.append(unsupported("dryRun", dry_run, ("All",)))
        if mode not in _FIELD_MODES:
            errors.append(unsupported("fieldValidation", mode, _FIELD_MODES))
        if errors:
            raise invalid(_WRITE_OPTIONS[self.verb], "", errors)
        agent = self.request.headers.get("user-agent", "").partition("/")[0]
        return WriteOptions(dry_run == "All", FieldCheck(mode), self.query.get("fieldManager") or agent or "unknown")

    @property
    def media_type(self) -> str:
        """The media type of the body."""
        return self.request.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def include(self) -> str:
        """The part of an object that the rows of a Table contain."""
        return self.query.get("includeObject", "")

    def body(self) -> Json:
        """The body as a tree. Raises Refusal (400, 415)."""
        kind = self.target.kind.resource.kind
        return negotiation.body_tree(self.request.body, self.request.headers.get("content-type", ""), kind)

    def body_as(self, resource: Resource) -> Json:
        """The body as a tree with the types of another kind than the target's. Raises Refusal (400, 415)."""
        tree = self.body()
        schemas.check_types(tree, resource)
        return tree

    def delete_options(self) -> DeleteOptions:
        """The options of a DELETE. Raises Refusal (400, 415, 422)."""
        return parse_options(self.body_as(DELETE_OPTIONS) if self.request.body else {}, self.query)


class Api:
    """Answers requests. Stateless: all state is in the world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._deletion = Deletion(world)
        self._writes = Writes(world, self._deletion)
        self._verbs: Mapping[str, Callable[[Ask], Response]] = {
            "get": self._get,
            "list": self._list,
            "create": self._create,
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }

    def answer(self, ask: Ask) -> Response:
        """Carry out any verb except watch. Raises Refusal."""
        target = ask.target
        if target.subresource and target.subresource not in target.kind.subresources:
            raise not_found(target.kind.resource, target.name)
        verb = self._verbs.get(ask.verb)
        if verb is None:
            raise _no_verb(ask)
        return verb(ask)

    def watch(self, ask: Ask, closed: Callable[[WatchStream], None]) -> WatchStream:
        """Open a watch. Raises Refusal."""
        target, query, storage = ask.target, ask.query, self._world.storage
        start = reads.watch_start(storage, target, query)
        plan = WatchPlan(
            resource=target.kind.key,
            namespace=target.namespace,
            selects=reads.selection(target, query),
            version=start.version,
            timeout=number(query, "timeoutSeconds", _DEFAULT_WATCH_TIMEOUT),
            bookmarks=reads.wants_bookmarks(query),
            bookmark=self._bookmarks(ask),
            present=self._presenter(ask),
            initial=start.initial,
            announce_end_of_initial=start.announce,
            idle_timeout=ask.idle_timeout,
        )
        return WatchStream(storage, self._world.clock, plan, closed)

    def reload(self) -> None:
        """Serve the CRDs in storage, after a restore."""
        definitions.refresh(self._world)

    def _get(self, ask: Ask) -> Response:
        if ask.target.subresource not in ("", "status", "scale"):
            raise method_not_allowed()
        stored = reads.get(self._world.storage, ask.target, ask.query)
        if ask.target.subresource == "scale":
            return json_answer(subresources.scale_of(ask.target.kind, stored))
        return self._object_answer(ask, stored)

    def _list(self, ask: Ask) -> Response:
        form, kind = ask.form, ask.target.kind
        page = reads.list_page(self._world.storage, ask.target, ask.query)
        if form is Form.METADATA:
            return bytes_answer(presentation.as_metadata_list(page))
        if form is Form.TABLE:
            meta = presentation.list_meta(page)
            return json_answer(tables.table(kind, page.items, self._world.clock.wall(), meta, ask.include))
        return bytes_answer(presentation.as_list(kind, page))

    def _create(self, ask: Ask) -> Response:
        target = ask.target
        if not target.name:
            options = ask.options()
            stored = self._writes.create(target, ask.body(), options)
            return with_warnings(self._object_answer(ask, stored, status=201), options.fields.warnings)
        if target.kind.resource == PODS and target.subresource == "binding":
            subresources.bind(self._world, self._writes, target, ask.body_as(subresources.BINDINGS))
            return json_answer(_success(), 201)
        if target.kind.resource == PODS and target.subresource == "eviction":
            delete_options = parse_options(ask.body_as(subresources.EVICTIONS).get("deleteOptions") or {}, ask.query)
            subresources.evict(self._world, self._deletion, target, delete_options)
            return json_answer(_success(), 201)
        raise method_not_allowed()

    def _update(self, ask: Ask) -> Response:
        target, options = ask.target, ask.options()
        if target.subresource == "scale":
            change = subresources.scaling(target, ask.body_as(subresources.SCALES))
            stored = self._writes.change(subresources.parent(target), change, options)
            return json_answer(subresources.scale_of(target.kind, stored))
        if target.subresource == "finalize":
            return self._object_answer(ask, self._writes.update(subresources.parent(target), ask.body(), options))
        if target.subresource not in ("", "status"):
            raise method_not_allowed()
        stored = self._writes.update(target, ask.body(), options)
        return with_warnings(self._object_answer(ask, stored), options.fields.warnings)

    def _patch(self, ask: Ask) -> Response:
        target, options = ask.target, ask.options()
        if ask.media_type == applying.MEDIA_TYPE and target.subresource in ("", "status"):
            return self._apply(ask, options)
        patch = self._patcher(ask)
        if target.subresource == "scale":
            change = subresources.scale_patching(target.kind, patch)
            stored = self._writes.change(subresources.parent(target), change, options)
            return json_answer(subresources.scale_of(target.kind, stored))
        if target.subresource not in ("", "status"):
            raise method_not_allowed()
        stored = self._writes.patch(target, patch, options)
        return with_warnings(self._object_answer(ask, stored), options.fields.warnings)

    def _apply(self, ask: Ask, options: WriteOptions) -> Response:
        """Server-side apply. Raises Refusal."""
        target, manager = ask.target, ask.query.get("fieldManager", "")
        if not manager:
            raise invalid(_WRITE_OPTIONS["patch"], "", [required("fieldManager", "is required for apply patch")])
        force = ask.query.get("force", "") in ("true", "1")
        how = applying.Apply(manager, self._world.timestamp(), force, target.subresource)
        body = negotiation.decoded(ask.request.body or b"", negotiation.YAML, target.kind.resource.kind)
        stored, new = self._writes.apply(target, applying.checked(body), how, options)
        return with_warnings(self._object_answer(ask, stored, status=201 if new else 200), options.fields.warnings)

    def _patcher(self, ask: Ask) -> Callable[[Json], Json]:
        """The patch as a function. Raises Refusal (400, 415)."""
        media_type, kind = ask.media_type, ask.target.kind
        if media_type not in (patching.JSON, patching.MERGE, patching.STRATEGIC):
            raise Refusal(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
        if media_type == patching.STRATEGIC and kind.custom:
            raise unsupported_media_type((patching.JSON, patching.MERGE))
        body = negotiation.decoded(ask.request.body or b"", negotiation.JSON, kind.resource.kind)
        if media_type == patching.JSON:
            return lambda tree: patching.json_patch(tree, body)
        if not isinstance(body, dict):
            raise bad_request("error decoding patch: the patch is no JSON object")
        if media_type == patching.MERGE:
            return lambda tree: dict(patching.merge_patch(tree, body))
        schema = schemas.of(kind.resource)
        return lambda tree: patching.strategic_merge(tree, body, schema)

    def _delete(self, ask: Ask) -> Response:
        target = ask.target
        if target.subresource:
            raise method_not_allowed()
        options = ask.delete_options()
        stored, gone = self._deletion.delete(target.kind, target.key, options)
        if not gone or target.kind.resource in _SHOWN_WHEN_DELETED:
            return self._object_answer(ask, stored)
        return json_answer(_deleted(target.kind, stored))

    def _delete_collection(self, ask: Ask) -> Response:
        target, storage = ask.target, self._world.storage
        options = ask.delete_options()
        selects = reads.selection(target, ask.query)
        with storage.lock:
            chosen = [stored for stored in storage.objects(target.kind.key, target.namespace) if selects(stored)]
            for stored in chosen:
                if storage.get(target.kind.key, stored.key):
                    self._deletion.delete(target.kind, stored.key, options)
            page = reads.Page(chosen, storage.version)
        return bytes_answer(presentation.as_list(target.kind, page))

    def _object_answer(self, ask: Ask, stored: Stored, status: int = 200) -> Response:
        return bytes_answer(self._presenter(ask)(stored), status)

    def _presenter(self, ask: Ask) -> Callable[[Stored], bytes]:
        """A function that renders objects in the requested form. In a watch, only the first Table has a header."""
        kind, clock, include = ask.target.kind, self._world.clock, ask.include
        headers = itertools.chain((True,), itertools.repeat(ask.verb != "watch"))

        def as_table(stored: Stored) -> bytes:
            meta = {"resourceVersion": str(stored.version)}
            header = next(headers)
            return msgspec.json.encode(tables.table(kind, [stored], clock.wall(), meta, include, header=header))

        match ask.form:
            case Form.TABLE:
                return as_table
            case Form.METADATA:
                return lambda stored: msgspec.json.encode(presentation.as_metadata(stored))
        return lambda stored: presentation.versioned(kind, stored)

    def _bookmarks(self, ask: Ask) -> Callable[[int, bool], bytes]:
        kind, form = ask.target.kind, ask.form

        def render(version: int, end_of_initial: bool) -> bytes:
            resource = kind.resource
            tree = bookmark_object(resource.api_version, resource.kind, version, end_of_initial=end_of_initial)
            if form is Form.METADATA:
                tree |= {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
            if form is Form.TABLE:
                meta = {"resourceVersion": str(version)}
                row = {"cells": [], "object": tree}
                tree = tables.table(kind, [], self._world.clock.wall(), meta, "") | {"rows": [row]}
            return msgspec.json.encode(tree)

        return render


def _no_verb(ask: Ask) -> Refusal:
    """The error for an unsupported verb. Custom resources are routed by path alone, so a missing name is reported
    instead.
    """
    if ask.target.kind.custom and not ask.target.name and ask.request.method in ("PUT", "PATCH"):
        return bad_request("name must be provided")
    return method_not_allowed()


def _success() -> Json:
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _deleted(kind: Kind, stored: Stored) -> Json:
    details: Json = {"name": stored.name}
    if kind.resource.group:
        details["group"] = kind.resource.group
    details |= {"kind": kind.resource.plural, "uid": stored.uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
