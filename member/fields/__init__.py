"""What each field of a spec does, found by setting it: `python -m member.fields` writes docs/fields.md."""
