"""Tools of the repository itself: set-up, tests, lint, Bazel. No room except cli/ imports them."""
