"""Arrays whose elements change places."""
