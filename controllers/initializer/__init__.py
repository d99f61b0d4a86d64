"""The controller of TidbInitializer (other-resources.md 2)."""
