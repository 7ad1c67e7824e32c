"""Makes a case small: edits of module and inputs, each kept if the outcome stays what it was."""
