"""Reasons of TidbInitializers, TidbDashboards and TidbNGMonitorings."""

from collections.abc import Mapping

from member.reasons.reason import LOOK_AT_PODS, NOTHING, Reason

OTHER_RESOURCES: Mapping[str, Reason] = {
    "PodNotReady": Reason(
        "The pod of a TidbDashboard or TidbNGMonitoring does not run yet, or is not Ready.",
        "It waits. Nothing else depends on this pod.",
        LOOK_AT_PODS,
    ),
    "Restarting": Reason(
        "The pod of a TidbDashboard or TidbNGMonitoring is being replaced by one of the newest spec.",
        "It waits until the new pod is Ready.",
        NOTHING,
    ),
    "VolumesKept": Reason(
        "All is as the spec wants it, but for the size or class of a volume: a StatefulSet can't change that.",
        "It serves with the volume that it has.",
        "Put the field back; or enlarge the claim yourself, delete the StatefulSet with `--cascade=orphan`, and have "
        "it made again.",
    ),
    "VolumesFixed": Reason(
        "The spec adds or removes a volume of a pod whose StatefulSet was made without or with it, which nobody can "
        "change.",
        "It leaves the pod as it is.",
        "Put `spec.storageVolumes` back, or delete the StatefulSet, which is made again; claims and their data stay.",
    ),
}
