"""The production operator in the sandbox, under plans of edits and faults: one seed, one run (design.md 3.2).

A plan says what users do and what breaks; the engine carries it out on a clock that only it moves; invariants are
judged at every write, oracles at the end. `python -m simulate --help`.
"""
