"""Dead code, common subexpressions, constants, plain simplification."""
