"""What a container finds when it starts: files, volumes, environment.

NotMountable      something the pod needs is not there yet
"""

import base64
import re
from collections.abc import Callable, Mapping

from kube.objects import Json
from kube.resources import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, SECRETS
from ports import quantity
from sandbox.cluster import Cluster
from sandbox.dataplane.processes import Disk

_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class NotMountable(Exception):
    """Raised if a pod must wait; the kubelet's FailedMount event has the same message."""


Disks = Callable[[str], Disk]
"""Returns the disk of an identity."""


class Mounts:
    """The volumes of one pod, resolved now. Raises NotMountable if one is missing."""

    def __init__(self, cluster: Cluster, pod: Json, disks: Disks) -> None:
        self._cluster = cluster
        self._pod = pod
        self._namespace: str = pod["metadata"]["namespace"]
        self._files: dict[str, dict[str, str]] = {}
        self._disks: dict[str, Disk] = {}
        self._secrets: set[str] = set()
        for volume in pod["spec"].get("volumes") or ():
            try:
                self._resolve(volume, disks)
            except NotMountable as missing:
                raise NotMountable(f'"{volume["name"]}" : {missing}') from missing

    def files(self, container: Json) -> dict[str, str]:
        """Texts by absolute path."""
        found: dict[str, str] = {}
        for mount in container.get("volumeMounts") or ():
            texts = self._files.get(mount["name"], {})
            path = mount["mountPath"].rstrip("/")
            sub_path = mount.get("subPath")
            if sub_path:
                found |= {path: texts[sub_path]} if sub_path in texts else {}
            else:
                found |= {f"{path}/{name}": text for name, text in texts.items()}
        return found

    def renewable(self, container: Json) -> dict[str, str]:
        """Texts of Secrets that change under a running container, by absolute path: all but those with a subPath."""
        found: dict[str, str] = {}
        for mount in container.get("volumeMounts") or ():
            if mount["name"] in self._secrets and not mount.get("subPath"):
                path = mount["mountPath"].rstrip("/")
                found |= {f"{path}/{name}": text for name, text in self._files[mount["name"]].items()}
        return found

    def disks(self, container: Json) -> dict[str, Disk]:
        """Volumes by mount path."""
        mounts = container.get("volumeMounts") or ()
        return {mount["mountPath"]: self._disks[mount["name"]] for mount in mounts if mount["name"] in self._disks}

    def environment(self, container: Json) -> dict[str, str]:
        """The environment variables of a container."""
        spec = self._pod["spec"]
        own = spec.get("hostname") or self._pod["metadata"]["name"]
        found = {"HOSTNAME": spec["nodeName"] if spec.get("hostNetwork") else own}
        for source in container.get("envFrom") or ():
            prefix = source.get("prefix", "")
            for kind in ("configMapRef", "secretRef"):
                if kind in source:
                    texts = self._texts(kind.removesuffix("Ref"), source[kind]["name"], source[kind])
                    found |= {prefix + name: text for name, text in texts.items()}
        for variable in container.get("env") or ():
            value = variable.get("value", "") if "valueFrom" not in variable else self._value(variable["valueFrom"])
            found[variable["name"]] = value
        return found

    def _resolve(self, volume: Json, disks: Disks) -> None:
        name = volume["name"]
        if "persistentVolumeClaim" in volume:
            self._disks[name] = disks(self._claimed(volume["persistentVolumeClaim"]["claimName"]))
        elif "configMap" in volume:
            source = volume["configMap"]
            self._files[name] = _items(source, self._texts("configMap", source["name"], source))
        elif "secret" in volume:
            source = volume["secret"]
            self._files[name] = _items(source, self._texts("secret", source["secretName"], source))
            self._secrets.add(name)
        elif "downwardAPI" in volume:
            items = volume["downwardAPI"].get("items") or ()
            self._files[name] = {
                item["path"]: self._field(item["fieldRef"]["fieldPath"]) for item in items if "fieldRef" in item
            }
        elif "projected" in volume:
            self._files[name] = self._projected(volume["projected"])
        elif "hostPath" in volume:
            self._disks[name] = disks(f"{self._pod['spec'].get('nodeName', '')}:{volume['hostPath']['path']}")
        elif "nfs" in volume:
            self._disks[name] = disks(f"{volume['nfs']['server']}:{volume['nfs']['path']}")
        else:
            self._disks[name] = disks(f"{self._pod['metadata']['uid']}/{name}")
            self._disks[name].memory = _memory(volume.get("emptyDir") or {})

    def _projected(self, volume: Json) -> dict[str, str]:
        found: dict[str, str] = {}
        for source in volume.get("sources") or ():
            for kind in ("configMap", "secret"):
                if kind in source:
                    found |= _items(source[kind], self._texts(kind, source[kind]["name"], source[kind]))
        return found

    def _claimed(self, name: str) -> str:
        claim = self._cluster.get(PERSISTENT_VOLUME_CLAIMS, self._namespace, name)
        if claim is None:
            raise NotMountable(f'persistentvolumeclaim "{name}" not found')
        volume = claim["spec"].get("volumeName", "")
        if claim.get("status", {}).get("phase") != "Bound" or not volume:
            raise NotMountable(f'persistentvolumeclaim "{name}" is not bound')
        if self._cluster.get(PERSISTENT_VOLUMES, "", volume) is None:
            raise NotMountable(f'persistentvolume "{volume}" not found')
        uid: str = claim["metadata"]["uid"]
        return uid

    def _texts(self, kind: str, name: str, source: Json) -> Mapping[str, str]:
        found = self._cluster.get(CONFIG_MAPS if kind == "configMap" else SECRETS, self._namespace, name)
        if found is None:
            if source.get("optional"):
                return {}
            raise NotMountable(f'{kind.lower()} "{name}" not found')
        data: Mapping[str, str] = found.get("data") or {}
        if kind == "configMap":
            return data
        return {key: base64.b64decode(value).decode("utf-8", "replace") for key, value in data.items()}

    def _value(self, source: Json) -> str:
        if "fieldRef" in source:
            return self._field(source["fieldRef"]["fieldPath"])
        for kind in ("configMapKeyRef", "secretKeyRef"):
            if kind in source:
                reference = source[kind]
                texts = self._texts(kind.removesuffix("KeyRef"), reference["name"], reference)
                if reference["key"] not in texts and not reference.get("optional"):
                    raise NotMountable(f"couldn't find key {reference['key']} in {reference['name']}")
                return texts.get(reference["key"], "")
        return ""

    def _field(self, path: str) -> str:
        meta, status = self._pod["metadata"], self._pod.get("status", {})
        subscript = _SUBSCRIPT.fullmatch(path)
        if subscript is not None:
            text: str = (meta.get(subscript.group(1)) or {}).get(subscript.group(2), "")
            return text
        if path in ("metadata.labels", "metadata.annotations"):
            entries = meta.get(path.removeprefix("metadata.")) or {}
            return "\n".join(f'{key}="{value}"' for key, value in sorted(entries.items()))
        values: dict[str, str] = {
            "metadata.name": meta["name"],
            "metadata.namespace": meta["namespace"],
            "metadata.uid": meta["uid"],
            "spec.nodeName": self._pod["spec"].get("nodeName", ""),
            "spec.serviceAccountName": self._pod["spec"].get("serviceAccountName", "default"),
            "status.podIP": status.get("podIP", ""),
            "status.hostIP": status.get("hostIP", ""),
        }
        if path not in values:
            raise NotMountable(f"unsupported fieldPath: {path}")
        return values[path]


def has_renewable(pod: Json, container: Json) -> bool:
    """True if a container mounts Secrets that change while it runs; needs no `Mounts`."""
    secrets = {volume["name"] for volume in pod["spec"].get("volumes") or () if "secret" in volume}
    mounts = container.get("volumeMounts") or () if secrets else ()
    return any(mount["name"] in secrets and not mount.get("subPath") for mount in mounts)


def _memory(source: Json) -> int | None:
    """The bytes of an emptyDir in memory with a limit; None for any other."""
    limited = source.get("medium") == "Memory" and "sizeLimit" in source
    return int(quantity.parse(source["sizeLimit"])) if limited else None


def _items(source: Json, texts: Mapping[str, str]) -> dict[str, str]:
    items = source.get("items")
    if not items:
        return dict(texts)
    missing = [item["key"] for item in items if item["key"] not in texts]
    if missing and not source.get("optional"):
        raise NotMountable(f"references non-existent config key: {missing[0]}")
    return {item["path"]: texts[item["key"]] for item in items if item["key"] in texts}
