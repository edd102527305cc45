"""One thread per test process, set before anything is imported; and what doctests need.

Two test processes that each use all cores would mostly wait for one another.
"""

import doctest
import importlib.util
import os
import re

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

collect_ignore = ["docs/conf.py", "docs/links.py"]  # parts of Sphinx, without doctests
if importlib.util.find_spec("torch") is None:
    collect_ignore += ["skselect/losses/_torch.py"]

# The numbers of a fitted model depend on the processor and on versions. An example that shows
# them is marked `# doctest: +DIGITS_VARY`: its words are compared, its numbers are not.
DIGITS_VARY = doctest.register_optionflag("DIGITS_VARY")
_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?")
_check_output = doctest.OutputChecker.check_output


def _check_words(checker: doctest.OutputChecker, want: str, got: str, optionflags: int) -> bool:
    if optionflags & DIGITS_VARY:
        want, got = _NUMBER.sub("0", want), _NUMBER.sub("0", got)
    return _check_output(checker, want, got, optionflags)


doctest.OutputChecker.check_output = _check_words
