"""The command line."""

#: Exit codes besides 0.
WRONG_INPUT = 2
INFEASIBLE = 3
BROKEN = 4
OPEN = 5
REFUSED = 6
INTERRUPTED = 130
CUT_SHORT = 141
