"""NVIDIA GPUs, by the driver of CUDA: PTX of both stacks, which the driver compiles."""
