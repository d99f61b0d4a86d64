"""The shell for start scripts: the part of bash that the scripts of v1.6 and of this operator use, on the world's
clock.

A script is parsed whole and runs as a generator, which yields requests to the world (`effects`). An unknown construct
ends the script with an error that names the line: a script is never half understood.
"""
