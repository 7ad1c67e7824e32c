"""Which instructions are calls of a library, and how each routine is called."""
