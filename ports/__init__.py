"""The ports to the outside: time, chance, and the network.

Everything that waits, draws a random number or sends a request takes one of these protocols as an argument.
Production passes the real implementation; tests and the simulator pass the virtual one, and time stands still
until told.
"""
