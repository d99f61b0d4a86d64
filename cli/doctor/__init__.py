"""`doctor`: the causes for which a cluster differs from its user's wishes (scheduler-deployment.md 13).

`reading` reads once and builds `Facts`; `causes/` are pure functions from facts to signs; `diagnosis` has the table of
all causes and builds findings; `rendering` shows them. It writes nothing.
"""
