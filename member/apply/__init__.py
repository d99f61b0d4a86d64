"""Writing objects: what was applied last, what differs from it, and the write itself."""
