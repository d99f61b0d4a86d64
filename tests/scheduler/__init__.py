"""The scheduler extender (scheduler-deployment.md 2)."""
