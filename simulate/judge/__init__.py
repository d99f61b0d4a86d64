"""Verdicts on a finished run: what each kind of object must look like, and what the operator reported."""
