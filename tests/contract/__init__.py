"""One contract, two worlds: the sandbox and the real control plane (design.md 3.9). Any difference is a defect of the
sandbox."""
