"""The board of `testbed report`: static pages that show how far the migration is, on which evidence, and what is open.

Each file makes the values of one part as plain data; pages.py fills the templates beside it with them.
"""
