"""The language: opset, shapes, literals, IR, verifier, analyses. Depends on no other room."""
