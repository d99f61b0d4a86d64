"""The state of a component in the caches: pods, volume claims, volumes, status. Reads only."""
