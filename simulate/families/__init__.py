"""Families of plans: a base, a change, a trouble and the moment at which it strikes."""
