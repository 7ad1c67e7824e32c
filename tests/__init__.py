"""All tests. Start them with ./testbed test, or pytest tests/test_x.py."""
