"""The simulated world with the operator in it: plans, faults, hands of users, clocks and calls."""
