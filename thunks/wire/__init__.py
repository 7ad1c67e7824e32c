"""Files of compiled programs (.tbx): sections with checksums, and what they hold as protos. docs/files.md."""
