"""What a release consists of, and how it is built: `make release VERSION=1.0.0rc1`. Nothing here publishes anything."""
