"""The LHLO dialect (HLO ops over buffers) and the lowering HLO -> LHLO."""
