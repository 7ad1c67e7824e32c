"""Random programs and edits of modules."""
