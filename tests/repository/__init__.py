"""The checkout as a whole."""
