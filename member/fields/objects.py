"""Every object of a cluster that does not exist yet: a pure function of its spec."""

from collections.abc import Iterator

from apis.accessor import component, find
from apis.cluster import Cluster
from kube.objects import Json
from member.components import workload, workload_names
from member.discovery import desired as discovery
from member.naming import member_name
from member.objects.config_map import choose_config_map, config_map


def desired_objects(tc: Cluster, discovery_image: str) -> Iterator[Json]:
    """The objects of a defaulted cluster, component by component. Raises InvalidField for an invalid spec."""
    if discovery.wanted(tc):
        yield discovery.role(tc)
        yield discovery.service_account(tc)
        yield discovery.role_binding(tc)
        yield discovery.deployment(tc, discovery_image)
        yield discovery.service(tc)
    for own in (workload(name) for name in workload_names(tc.kind) if find(tc, name) is not None):
        strategy = component(tc, own.name).config_update_strategy
        choice = choose_config_map(member_name(tc, own.name), own.content(tc), strategy)
        yield from own.services(tc)
        if choice.data:
            yield config_map(tc, own.name, choice)
        yield own.stateful_set(tc, choice.name)
