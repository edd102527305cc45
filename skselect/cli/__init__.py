"""The command line."""

#: Exit codes besides 0.
WRONG_INPUT, INFEASIBLE, BROKEN, UNDECIDED, INTERRUPTED = 2, 3, 4, 5, 130
