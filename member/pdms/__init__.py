"""PD's microservices, tso and scheduling (objects.md 4.2, lifecycle.md 6.2)."""
