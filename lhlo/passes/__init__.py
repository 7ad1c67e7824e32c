"""Passes from LHLO to LHLO, as MLIR passes; PASSES in pipeline.py lists them."""
