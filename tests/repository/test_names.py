"""The checkout is the package `testbed`, and only that, whatever the name of its folder is."""

import sys

import testbed

from ... import hlo


def test_tests_and_rooms_are_imported_as_testbed():
    assert __name__ == "testbed.tests.repository.test_names"
    assert hlo.__name__ == "testbed.hlo"
    assert testbed.__path__ == sys.modules["testbed"].__path__


def test_an_unknown_public_name_lists_the_known_ones():
    try:
        testbed.no_such_name  # noqa: B018
    except AttributeError as error:
        assert "__version__" in str(error)
    else:
        raise AssertionError("expected AttributeError")
