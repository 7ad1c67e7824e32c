"""Fixtures for all tests."""

import pytest

from ..codegen.options import assume_host


@pytest.fixture
def cpu(request):
    """The processor that code is made for while a test runs: an indirect parameter, 'host' or a level of x86-64."""
    assume_host(None if request.param == "host" else request.param)
    yield request.param
    assume_host(None)
