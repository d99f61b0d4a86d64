"""The library for authors of controllers: the parts of the wheel that are not built from the rooms."""
