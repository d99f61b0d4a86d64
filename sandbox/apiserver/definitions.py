"""CustomResourceDefinitions: accepts them and serves their resources."""

from kube.objects import Json
from kube.resources import CUSTOM_RESOURCE_DEFINITIONS
from sandbox.apiserver import structural
from sandbox.apiserver.kinds import Kind
from sandbox.apiserver.world import World


def refresh(world: World) -> None:
    """Mark new CRDs as established, and serve exactly the CRDs in storage. The caller holds the lock."""
    kind = world.registry.of(CUSTOM_RESOURCE_DEFINITIONS)
    for stored in world.storage.objects(kind.key):
        if not world.registry.has_read(stored):
            tree = stored.tree()
            if _accept(tree, world.timestamp()):
                world.write(kind, tree)
    before = {kind.key: kind.custom for kind in world.registry.kinds.values()}
    world.registry.install(world.storage.objects(kind.key))
    for each in world.registry.kinds.values():
        if before.get(each.key) not in (None, each.custom):
            _read_anew(world, each)


def _read_anew(world: World, kind: Kind) -> None:
    """Show objects with the defaults of a new schema, as a real server does on read, without a write."""
    schema = kind.custom.schema if kind.custom else {}
    for stored in world.storage.objects(kind.key):
        tree = stored.tree()
        structural.apply_defaults(tree, schema)
        world.storage.show(kind.key, stored, tree)


def _accept(tree: Json, now: str) -> bool:
    """Update the status of a CRD; True if it changed."""
    spec, status = tree["spec"], tree.setdefault("status", {})
    stored = list(status.get("storedVersions") or ())
    storage_version = next(version["name"] for version in spec["versions"] if version.get("storage"))
    if storage_version not in stored:
        stored.append(storage_version)
    conditions = status.get("conditions") or _conditions(now)
    wanted = {"conditions": conditions, "acceptedNames": dict(spec["names"]), "storedVersions": stored}
    if status == wanted:
        return False
    tree["status"] = wanted
    return True


def _conditions(now: str) -> list[Json]:
    names = ("NamesAccepted", "NoConflicts", "no conflicts found")
    established = ("Established", "InitialNamesAccepted", "the initial names have been accepted")
    return [
        {"type": type_, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
        for type_, reason, message in (names, established)
    ]
