"""Programs made from JAX code by make.py: HLO, StableHLO, inputs and outputs."""
