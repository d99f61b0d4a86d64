"""Real servers under the operator: `make test-real BINARIES=DIR`. CI has no such programs, and skips these tests."""
