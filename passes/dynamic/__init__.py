"""Replace bounded dynamic dimensions by static ones."""
