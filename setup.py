"""What pyproject.toml cannot say: the packages are found, and the root of the checkout is the first of them."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent))
from tools.python.packages import found

setup(package_dir={"testbed": "."}, packages=found(Path(__file__).parent))
