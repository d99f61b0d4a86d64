"""The built-in controllers of Kubernetes that an operator leans on, as level-triggered actors.

Where they decide, a pure function of a snapshot does; the actor around it only carries the plan out.
"""
