"""The scheduler extender: which nodes kube-scheduler may choose for the pods of a TidbCluster.

It is a process of its own, beside a kube-scheduler whose configuration names it (scheduler-deployment.md 2). From a
question to its answer: `main` serves, `protocol` reads and writes what goes over the wire, `extender` decides by
`spread`, `previous_node` and `turns`, which read the cluster through `cluster_state`.
"""
