"""ResourceQuotas as Kubernetes' admission enforces them: usage is counted from the objects of the namespace.

The scopes `BestEffort`, `NotBestEffort`, `Terminating` and `NotTerminating` choose pods; a quota with other scopes
counts nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal

from kube.objects import Json
from kube.resources import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES
from ports import quantity
from sandbox import quantities
from sandbox.apiserver.kinds import RESOURCE_QUOTAS, Kind
from sandbox.apiserver.refusals import forbidden
from sandbox.apiserver.world import World

Usage = Mapping[str, Decimal]
"""The amount of each resource of a quota."""

_QUOTAS = str(RESOURCE_QUOTAS)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_BY_PLURAL = ("configmaps", "secrets", "services", "pods", "persistentvolumeclaims", "resourcequotas")
_OF_CLASS = ".storageclass.storage.k8s.io/"
_ENDED = ("Succeeded", "Failed")
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")


def check(world: World, kind: Kind, tree: Json, old: Json | None) -> None:
    """Refuse what would exceed a quota of its namespace. Raises Refusal (403)."""
    namespace = tree["metadata"].get("namespace", "")
    for quota in _quotas(world, namespace):
        if kind.resource == RESOURCE_QUOTAS or not _is_in_scope(quota, kind, tree):
            continue
        hard, name = _hard(quota), tree["metadata"].get("name", "")
        wanted = {each: value for each, value in usage_of(kind, tree).items() if each in hard}
        if kind.resource == PODS and old is None and (missing := _unset(tree, hard)):
            raise forbidden(kind.resource, name, f"failed quota: {quota['metadata']['name']}: must specify {missing}")
        before = usage_of(kind, old) if old is not None else {}
        more = {each: value - before.get(each, Decimal()) for each, value in wanted.items()}
        used = _used(world, quota)
        if over := sorted(each for each, value in more.items() if value > 0 and used[each] + value > hard[each]):
            texts = quota["spec"]["hard"]
            told = [_told({each: value[each] for each in over}, texts) for value in (more, used, hard)]
            what = f"requested: {told[0]}, used: {told[1]}, limited: {told[2]}"
            raise forbidden(kind.resource, name, f"exceeded quota: {quota['metadata']['name']}, {what}")


def count(world: World, namespace: str) -> None:
    """Write what the quotas of a namespace allow and what is used of it into their statuses, where that changed."""
    for quota in _quotas(world, namespace):
        texts = quota["spec"].get("hard") or {}
        used = _used(world, quota)
        status = {"hard": texts, "used": {each: _text(used[each], str(text)) for each, text in texts.items()}}
        if quota.get("status") != status:
            (kind,) = (each for each in world.registry.kinds.values() if each.resource == RESOURCE_QUOTAS)
            world.write(kind, quota | {"status": status})


def usage_of(kind: Kind, tree: Json) -> Usage:
    """What one object counts in quotas."""
    resource = kind.resource
    found = Counter[str]()
    if resource == PODS:
        if (tree.get("status") or {}).get("phase") in _ENDED:
            return {}
        pod = _of_pod(tree["spec"])
        return {**pod, "pods": Decimal(1), "count/pods": Decimal(1)}
    found[f"count/{resource}"] += 1
    if not resource.group and resource.plural in _BY_PLURAL:
        found[resource.plural] += 1
    if resource == SERVICES:
        spec = tree["spec"]
        found["services.loadbalancers"] += spec.get("type") == "LoadBalancer"
        found["services.nodeports"] += len(spec.get("ports") or ()) if spec.get("type") in _WITH_NODE_PORTS else 0
    usage = {each: Decimal(number) for each, number in found.items()}
    if resource == PERSISTENT_VOLUME_CLAIMS:
        spec = tree["spec"]
        size = quantity.parse(((spec.get("resources") or {}).get("requests") or {}).get("storage", 0))
        of_class = f"{spec.get('storageClassName') or ''}{_OF_CLASS}"
        usage |= {
            "requests.storage": size,
            f"{of_class}requests.storage": size,
            f"{of_class}persistentvolumeclaims": Decimal(1),
        }
    return usage


def _of_pod(spec: Json) -> dict[str, Decimal]:
    """Requests and limits: the sum of the containers, or what an init container needs if that is more."""
    found: dict[str, Decimal] = {}
    for part in ("requests", "limits"):
        for name in _COMPUTE:
            total = sum((_amount(container, part, name) for container in spec.get("containers") or ()), Decimal())
            first = max((_amount(each, part, name) for each in spec.get("initContainers") or ()), default=Decimal())
            found[f"{part}.{name}"] = max(total, first)
    return found | {name: found[f"requests.{name}"] for name in _COMPUTE}


def _amount(container: Json, part: str, name: str) -> Decimal:
    return quantity.parse((_resources(container).get(part) or {}).get(name, 0))


def _resources(container: Json) -> Json:
    return container.get("resources") or {}


def _unset(pod: Json, hard: Usage) -> str:
    """What a quota counts and containers do not say, with those containers; empty if there is none."""
    spec = pod["spec"]
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    missing: dict[str, list[str]] = {}
    for each in sorted(hard):
        part, _, name = each.partition(".") if each.startswith(("requests.", "limits.")) else ("requests", "", each)
        if name in _COMPUTE:
            without = sorted(one["name"] for one in containers if name not in (_resources(one).get(part) or {}))
            missing |= {each: without} if without else {}
    return "; ".join(f"{each} for: {','.join(names)}" for each, names in missing.items())


def _quotas(world: World, namespace: str) -> list[Json]:
    return [item.tree() for item in world.storage.objects(_QUOTAS, namespace)] if namespace else []


def _hard(quota: Json) -> dict[str, Decimal]:
    return {each: quantity.parse(text) for each, text in (quota["spec"].get("hard") or {}).items()}


def _used(world: World, quota: Json) -> dict[str, Decimal]:
    """What the objects of the quota's namespace use of it."""
    namespace, hard = quota["metadata"]["namespace"], _hard(quota)
    total = dict.fromkeys(hard, Decimal())
    for kind in world.registry.kinds.values():
        if not kind.resource.namespaced or not _may_count(kind, hard):
            continue
        for stored in world.storage.objects(kind.key, namespace):
            tree = stored.tree()
            usage = usage_of(kind, tree) if _is_in_scope(quota, kind, tree) else {}
            for each in usage.keys() & total.keys():
                total[each] += usage[each]
    return total


def _may_count(kind: Kind, hard: Iterable[str]) -> bool:
    """True if objects of a kind may use something of a quota: its own resources, or those listed in its spec."""
    resource = kind.resource
    if resource in (PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS):
        return True
    return f"count/{resource}" in hard or (not resource.group and resource.plural in hard)


def _is_in_scope(quota: Json, kind: Kind, tree: Json) -> bool:
    scopes = quota["spec"].get("scopes") or ()
    if quota["spec"].get("scopeSelector"):
        return False
    if not scopes:
        return True
    if kind.resource != PODS:
        return False
    holds = {
        "BestEffort": (tree.get("status") or {}).get("qosClass", "BestEffort") == "BestEffort",
        "Terminating": tree["spec"].get("activeDeadlineSeconds") is not None,
    }
    holds |= {"NotBestEffort": not holds["BestEffort"], "NotTerminating": not holds["Terminating"]}
    return all(holds.get(each, False) for each in scopes)


def _told(amounts: Mapping[str, Decimal], texts: Json) -> str:
    return ",".join(f"{each}={_text(amounts[each], str(texts[each]))}" for each in sorted(amounts))


def _text(amount: Decimal, like: str) -> str:
    """An amount as a quantity of the form of another one: binary or decimal."""
    if like[-1:] == "i":
        return quantities.canonical(f"{amount / 1024}Ki")
    return quantities.canonical(f"{amount * 1000}m" if amount % 1 else f"{amount:f}")
