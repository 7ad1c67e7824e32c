"""Modules built in Python, with XlaBuilder's vocabulary: `builder` holds the builder, `ops` all functions."""
