"""The volume claims of pods. Reads only."""

from kube.objects import Object
from member.round import Round


def claims_of(round_: Round, pod: Object) -> list[Object]:
    """The cached claims that a pod mounts; one that the cache lacks is left out."""
    volumes = pod.decode()["spec"].get("volumes") or ()
    names = [volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume]
    found = (round_.listers.persistent_volume_claims.get(round_.namespace, name) for name in names)
    return [claim for claim in found if claim is not None]
