"""The contents of a release, and its build: `make release VERSION=1.0.0rc1`. Nothing here publishes anything."""
