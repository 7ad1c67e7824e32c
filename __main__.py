"""`python -m testbed`: the testbed command."""

import sys

from .cli.start import start

if __name__ == "__main__":
    sys.exit(start())
