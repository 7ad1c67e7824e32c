"""Fixtures for all tests."""

import pytest

from ..codegen.options import assume_host, assumed_host
from .support.processors import code_for


@pytest.fixture
def cpu(request):
    """The processor that code is made for while a test runs: an indirect parameter, 'host' or a level of x86-64."""
    if request.param != "host":
        with code_for(request.param):
            yield request.param
        return
    before = assumed_host()
    assume_host(None)
    yield request.param
    assume_host(before)
