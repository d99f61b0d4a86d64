"""Replacement of lost members: the steps that components share, and the evidence of a loss."""
