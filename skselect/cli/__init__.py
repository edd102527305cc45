"""The command line."""

#: Exit codes besides 0.
WRONG_INPUT, INFEASIBLE, BROKEN, OPEN, INTERRUPTED, CUT_SHORT = 2, 3, 4, 5, 130, 141
