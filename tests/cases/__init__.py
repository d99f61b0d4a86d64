"""Small inputs that once failed: manifests of users, each with the behaviour that it must show."""
