"""LHLO has no op classes of its own. Without this file the bindings would search sys.path for every op."""
