"""PD: the placement driver, which knows all stores and hands out timestamps."""
