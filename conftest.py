"""The root of the pytest set-up: module names (tools/python/pytest_names.py), `--deep`, TESTBED_CPU, Hypothesis."""

import importlib.util
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).absolute().parent


def _install_names() -> None:
    # By path: at this point no package name for the checkout can be trusted yet.
    spec = importlib.util.spec_from_file_location("_testbed_pytest_names", ROOT / "tools/python/pytest_names.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.install(ROOT)


_install_names()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--deep", action="store_true", help="also run tests marked deep, and many more random examples")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--deep"):
        os.environ["TESTBED_DEEP"] = "1"
    if os.environ.get("TESTBED_CPU"):
        from testbed.codegen.options import assume_host

        assume_host(os.environ["TESTBED_CPU"])
    from hypothesis import HealthCheck, settings

    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    settings.register_profile("fast", max_examples=30, deadline=None, derandomize=True, suppress_health_check=slow)
    settings.register_profile("deep", max_examples=1000, deadline=None, suppress_health_check=slow, print_blob=True)
    settings.load_profile("deep" if os.environ.get("TESTBED_DEEP") else "fast")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("TESTBED_DEEP"):
        return
    skip = pytest.mark.skip(reason="deep test: run with --deep or TESTBED_DEEP=1")
    for item in items:
        if "deep" in item.keywords:
            item.add_marker(skip)
