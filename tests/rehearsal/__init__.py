"""Tests of `rehearsal`."""
