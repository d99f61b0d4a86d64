"""ConfigMap, Job and scripts of a TidbInitializer, pure (other-resources.md 2.3)."""
