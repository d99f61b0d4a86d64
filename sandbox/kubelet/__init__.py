"""The kubelet of every simulated node: starts what was bound to it, tells the truth about it, ends it in good order."""
