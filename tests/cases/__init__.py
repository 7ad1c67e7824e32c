"""Tables of modules and inputs that several tests use."""
