"""The library for authors of controllers: what the wheel has beside the rooms that it is built from."""
