"""`python -m testbed.benchmarks.sweep`: command.py."""

import sys

from .command import main

sys.exit(main())
