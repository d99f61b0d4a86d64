"""What every component that runs in a StatefulSet goes through: creation, scaling, rolling, suspension."""
