"""The life cycle that all components in StatefulSets share: creation, scaling, rolling restarts, suspension."""
