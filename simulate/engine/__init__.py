"""The simulated world with the operator in it: plans, faults, users' actions, clocks and calls."""
