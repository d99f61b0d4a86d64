"""Programs that use our rooms as a library would be used; each is read as a tutorial and run by a test."""
