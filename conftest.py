"""Set before anything is imported: one thread per test process.

Two test processes whose boosters each take all cores would spend their time waiting for one
another.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
