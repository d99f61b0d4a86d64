"""What runs of a cluster, for the rules that are judged by it (api/defaults-and-validation.md 4). Reads caches only."""

from apis.accessor import components
from apis.tidbcluster import TidbCluster
from apis.validation import Running, observe
from kube.objects import Json
from member.context import Listers
from member.naming import member_name
from member.objects.config_map import CONFIG_FILE, in_use_config_map_name


def running(tc: TidbCluster, listers: Listers) -> Running:
    """The StatefulSets of the cluster's components, and the configuration that their pods mount."""
    namespace = tc.metadata.namespace
    stateful_sets: dict[str, Json] = {}
    config_files: dict[str, str] = {}
    for part in components(tc):
        live = listers.stateful_sets.get(namespace, member_name(tc, part.name))
        if live is None:
            continue
        stateful_sets[part.name] = live.decode()
        in_use = in_use_config_map_name(tc, part.name, stateful_sets[part.name])
        config_map = listers.config_maps.get(namespace, in_use) if in_use else None
        if config_map is not None:
            config_files[part.name] = (config_map.decode().get("data") or {}).get(CONFIG_FILE, "")
    return observe(stateful_sets, config_files)
