"""`python -m testbed.benchmarks.suite`."""

import sys

from .command import main

if __name__ == "__main__":  # a child process that multiprocessing starts must not run the suite again
    sys.exit(main())
