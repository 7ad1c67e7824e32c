"""The pytest set-up: module names (tools/python/pytest_names.py), `--deep`, `--campaign`, TESTBED_CPU."""

import faulthandler
import importlib.util
import os
import random
import signal
from pathlib import Path

import pytest

ROOT = Path(__file__).absolute().parent


def _install_names() -> None:
    # Load by path: the checkout has no reliable package name yet.
    spec = importlib.util.spec_from_file_location("_testbed_pytest_names", ROOT / "tools/python/pytest_names.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.install(ROOT)


_install_names()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--deep", action="store_true", help="also run tests marked deep, and many more random examples")
    parser.addoption("--campaign", action="store_true", help="a deep run on new seeds, with ten times its examples")


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts background jobs with SIGINT ignored, and children inherit it: tests of Ctrl-C would wait forever.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--campaign"):
        os.environ["TESTBED_CAMPAIGN"] = "1"
        # Workers of pytest-xdist inherit it: all have to collect the same tests.
        os.environ.setdefault("TESTBED_SEED", str(random.SystemRandom().randrange(1, 10**6)))
    if config.getoption("--deep") or os.environ.get("TESTBED_CAMPAIGN"):
        os.environ["TESTBED_DEEP"] = "1"
    if os.environ.get("TESTBED_CPU"):
        from testbed.codegen.options import assume_host

        assume_host(os.environ["TESTBED_CPU"])
    if os.environ.get("TESTBED_THREADS"):
        from testbed.codegen.threads import set_threads

        set_threads(int(os.environ["TESTBED_THREADS"]))
    load_hypothesis_profile()


def load_hypothesis_profile() -> None:
    """The default run draws the same examples each time; deep runs and campaigns draw new ones and keep what failed."""
    from hypothesis import HealthCheck, settings
    from hypothesis.database import DirectoryBasedExampleDatabase

    every = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    drawing = settings(
        every, derandomize=False, print_blob=True, database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis/examples")
    )
    settings.register_profile("fast", every, max_examples=30, derandomize=True)
    settings.register_profile("deep", drawing, max_examples=1_000)
    settings.register_profile("campaign", drawing, max_examples=10_000)
    chosen = [name for name in ("campaign", "deep") if os.environ.get(f"TESTBED_{name.upper()}")]
    settings.load_profile((chosen or ["fast"])[0])


def pytest_report_header() -> str | None:
    seed = os.environ.get("TESTBED_SEED")
    return f"TESTBED_SEED={seed}: set it to draw the same random programs again" if seed else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    if os.environ.get("TESTBED_DEEP"):  # may take as long as it likes
        faulthandler.cancel_dump_traceback_later()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    skips = []
    if not os.environ.get("TESTBED_DEEP"):
        skips.append(("deep", "deep test: run with --deep or TESTBED_DEEP=1"))
    if os.environ.get("TESTBED_EMITTERS", "ledger") != "ledger":
        skips.append(("default_emitters", "presupposes the usual default: run it without TESTBED_EMITTERS"))
    for item in items:
        for marker, reason in skips:
            if marker in item.keywords:
                item.add_marker(pytest.mark.skip(reason=reason))
