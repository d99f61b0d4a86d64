"""The effects of all fields of a spec, found by setting them: `python -m member.fields` writes docs/fields.md."""
