package main

import (
	"slices"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// discover lists what the server serves, as `group/version/plural`, subresources left out.
func discover(config *rest.Config) (map[string]any, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return nil, err
	}
	lists, err := client.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	served := []string{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			served = append(served, list.GroupVersion+"/"+resource.Name)
		}
	}
	slices.Sort(served)
	return map[string]any{"version": version.GitVersion, "served": served}, nil
}
