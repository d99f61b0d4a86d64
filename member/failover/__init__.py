"""Replacing lost members: the steps that all components share, and what proves a loss."""
