"""The effect of each field of a spec, found by setting it: the page docs/fields.md."""
