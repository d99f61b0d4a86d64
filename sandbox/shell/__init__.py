"""The shell that start scripts run in: the part of bash that scripts of v1.6 and ours use, on the clock of the world.

A script is parsed whole and run as a generator, which yields what only the world can do (`effects`). What the sandbox
does not know ends the script with an error that names the line: a script is never half understood.
"""
