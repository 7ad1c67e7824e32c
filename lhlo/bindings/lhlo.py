"""LHLO has no op classes of its own. The bindings import this once; without it they would search the path at every op."""
