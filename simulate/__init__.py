"""The production operator in the sandbox, under plans of edits and faults: a seed determines a run (design.md 3.2).

A plan lists the edits of users and the faults. The engine carries it out on a clock that only it moves; invariants are
checked at every write, oracles at the end. See `python -m simulate --help`.
"""
