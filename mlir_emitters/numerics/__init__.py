"""What one element is: arithmetic, functions, conversions."""
