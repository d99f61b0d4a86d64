"""What the caches show of a component: pods, volume claims, volumes, status. Reads only."""
