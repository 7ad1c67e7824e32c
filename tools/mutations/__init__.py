"""Wrong neighbours of the rows of every table, for tools/mutate.py: one file a room."""
