"""Which instructions become calls of a library routine (LAPACK), and how each routine is called."""
