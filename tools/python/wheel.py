"""What `pip wheel .` leaves out: the root of the package is the root of the checkout, with its pytest set-up."""

from setuptools.command.build_py import build_py

CHECKOUT_ONLY = frozenset({"conftest", "setup"})
"""Modules of the root that are no part of the package."""


class BuildPy(build_py):
    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        found = super().find_package_modules(package, package_dir)
        return [row for row in found if package != "testbed" or row[1] not in CHECKOUT_ONLY]
