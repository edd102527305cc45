"""Run the command line with ``python -m skselect``."""

import sys

from skselect.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
