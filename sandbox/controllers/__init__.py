"""The built-in controllers of Kubernetes that the operator depends on, as level-triggered actors.

A pure function of a snapshot decides where possible; the actor around it carries out the plan.
"""
