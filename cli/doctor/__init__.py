"""`doctor`: why a cluster is not as its user wants it, cause by cause (scheduler-deployment.md 13).

`reading` looks once and makes `Facts`; `causes/` are pure functions from these to signs; `diagnosis` has the table of
all causes and makes findings; `rendering` shows them. Nothing is written.
"""
