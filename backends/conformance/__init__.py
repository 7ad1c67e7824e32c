"""Tests of a back end, which its package runs with pytest:

    from testbed.backends.conformance import BackendConformance

    class TestMine(BackendConformance):
        platform = "mine"

Each capability that the platform declares is tested; each one that it does not declare must refuse in one line.
"""

from .suite import BackendConformance as BackendConformance
