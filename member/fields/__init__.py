"""Fields of a spec that have no effect, and settings that something else overrides."""
