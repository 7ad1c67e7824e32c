"""Checks of a row's gate beyond the race: of what grows. Each returns a phrase for each reason to refuse the row."""
