"""Tools of the repository itself: set-up, tests, lint, Bazel. Nothing here is imported by the rooms."""
