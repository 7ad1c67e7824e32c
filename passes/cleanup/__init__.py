"""Dead code elimination, common subexpressions, constant folding, and plain simplification."""
