"""Flags as one value and the migration ledger: the only room that chooses a stack."""
