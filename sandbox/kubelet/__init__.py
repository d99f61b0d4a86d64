"""The kubelet of every simulated node: starts bound pods, reports their true state, ends them in good order."""
