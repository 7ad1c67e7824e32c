"""The `testbed` command: one file per subcommand. Besides pjrt/, only this room reads the environment."""
