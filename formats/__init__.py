"""Programs in and out: HLO text, protos, StableHLO, arrays; files that appear whole or not at all."""
