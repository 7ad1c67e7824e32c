"""LHLO has no op classes of its own. Without this file the bindings would search the path at every op."""
