"""What the commands for single pods share (lifecycle.md 13); each is an `act` in the package of its component."""
