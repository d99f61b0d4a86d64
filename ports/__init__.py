"""The ports to the outside world: time, randomness and the network.

Code that waits, draws a random number or sends a request takes one of these protocols as an argument. Production passes
the real implementation; tests and the simulator pass a virtual one, whose time moves only when they step it.
"""
