"""Attacks by users of a namespace, by data planes and by clients that the operator withstands."""
