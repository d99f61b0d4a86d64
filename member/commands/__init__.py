"""The common parts of commands for single pods (lifecycle.md 13); each is an `act` in its component's package."""
