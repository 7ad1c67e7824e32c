"""Checks of a row's gate beyond its fixed cases, of results: each returns a phrase for each reason to refuse it."""
