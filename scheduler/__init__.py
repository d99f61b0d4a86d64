"""The scheduler extender: chooses the nodes that kube-scheduler may use for pods of a TidbCluster.

It is a separate process beside a kube-scheduler whose configuration names it (scheduler-deployment.md 2). `main`
serves, `protocol` decodes questions and encodes answers, and `extender` decides with `spread`, `previous_node` and
`turns`, which read the cluster through `cluster_state`.
"""
