"""The `testbed` command: one file a subcommand; the only room besides pjrt/ that reads the environment."""
