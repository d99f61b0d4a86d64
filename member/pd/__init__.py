"""PD: the placement driver, which knows all stores and allocates timestamps."""
