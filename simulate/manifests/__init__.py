"""Generated manifests: new objects, mutations and wrong types, and what the operator makes of them."""
