"""A small conformance corpus that stands in the repository, and the script that makes it (make.py)."""
