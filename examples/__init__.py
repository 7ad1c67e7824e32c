"""Programs that make.py made from JAX code: HLO, StableHLO, inputs and outputs."""
