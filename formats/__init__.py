"""Reading and writing programs: HLO text, protos, StableHLO, arrays (.npz), and atomic writing of files."""
