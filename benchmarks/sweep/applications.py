"""Programs as users of JAX write them, layers, losses, simulations and filters, on both stacks against XLA:CPU.

Run: .venv/bin/python -m testbed.benchmarks.sweep applications [--only REGEX]; 5 minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from . import application_layers as layers
from . import application_models as models
from .jax_text import hlo_text

Shapes = tuple[str, ...]
"""Of the arguments, as 'f32 16,128'."""

LAYER: Shapes = ("f32 128,256", "f32 256,768", "f32 256,256", "f32 256,1024", "f32 1024,256")
BLOCK: Shapes = ("f32 2,28,28,32", "f32 1,1,32,192", "f32 3,3,1,192", "f32 1,1,192,32")
RECURRENT: Shapes = ("f32 32,16,64", "f32 64,384", "f32 128,384", "f32 16,128")

APPLICATIONS: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "encoder": (layers.encoder, LAYER),
    "encoder bf16": (layers.encoder, tuple(shape.replace("f32", "bf16") for shape in LAYER)),
    "encoder_gradient": (layers.encoder_gradient, LAYER),
    "gru": (layers.gru, RECURRENT),
    "gru_gradient": (layers.gru_gradient, RECURRENT),
    "inverted_residual": (layers.inverted_residual, BLOCK),
    "inverted_residual_gradient": (layers.inverted_residual_gradient, BLOCK),
    "convnext": (layers.convnext, ("f32 1,28,28,96", "f32 7,7,1,96", "f32 96,384", "f32 384,96")),
    "unet_step": (layers.unet_step, ("f32 1,64,64,16", "f32 3,3,16,32", "f32 3,3,32,64", "f32 3,3,96,16")),
    "cnn_gradient": (layers.cnn_gradient, ("f32 32,28,28,1", "s32 32", "f32 3,3,1,16", "f32 3,3,16,32", "f32 1568,10")),
    "rotary_decode": (layers.rotary_decode, ("f32 1024", "f32 512,16,64", "f32 512,16,64", "f32 1024,3072", "s32")),
    "linear_attention": (layers.linear_attention, ("f32 512,32", "f32 512,32", "f32 512,32")),
    "state_space": (layers.state_space, ("f32 1024,64", "f32 1024,64")),
    "cross_entropy_gradient": (layers.cross_entropy_gradient, ("f32 64,32000", "s32 64")),
    "contrastive_gradient": (layers.contrastive_gradient, ("f32 256,128", "f32 256,128")),
    "word_vectors": (layers.word_vectors, ("f32 10000,64", "f32 10000,64", "s32 128", "s32 128,6")),
    "adafactor": (layers.adafactor, ("f32 1024,1024", "f32 1024,1024", "f32 1024", "f32 1024")),
    "nucleus": (layers.nucleus, ("f32 4,32000", "u32 2")),
    "beam": (layers.beam, ("f32 4", "f32 4,32000")),
    "quantized": (layers.quantized, ("f32 64,1024", "s8 1024,1024", "f32 1024")),
    "ensemble": (layers.ensemble, ("f32 64,16", "f32 32,16,64", "f32 32,64,4")),
    "hessian": (layers.hessian, ("f32 32", "f32 64,8")),
    "blur": (models.blur, ("f32 512,512",)),
    "edges": (models.edges, ("f32 512,512",)),
    "equalized": (models.equalized, ("u8 512,512",)),
    "resized": (models.resized, ("f32 256,256,3",)),
    "rotated": (models.rotated, ("f32 256,256",)),
    "normalized_image": (models.normalized_image, ("u8 8,224,224,3",)),
    "suppressed": (models.suppressed, ("f32 256,4", "f32 256")),
    "spectrogram": (models.spectrogram, ("f32 65536", "f32 257,80")),
    "fft_convolution": (models.fft_convolution, ("f32 16,8192", "f32 256")),
    "filtered": (models.filtered, ("f32 1000,64",)),
    "lattice_boltzmann": (models.lattice_boltzmann, ("f32 9,128,128",)),
    "wave": (models.wave, ("f32 256,256", "f32 256,256")),
    "heat_3d": (models.heat_3d, ("f32 64,64,64",)),
    "ising": (models.ising, ("f32 256,256", "u32 2")),
    "sinkhorn": (models.sinkhorn, ("f32 512,512",)),
    "sinkhorn_logs": (models.sinkhorn_logs, ("f32 256,256",)),
    "shortest_paths": (models.shortest_paths, ("f32 128,128",)),
    "viterbi": (models.viterbi, ("f32 64,64", "f32 256,64")),
    "forward_sums": (models.forward_sums, ("f32 64,64", "f32 256,64")),
    "edit_distance": (models.edit_distance, ("s32 256", "s32 256")),
    "particle_filter": (models.particle_filter, ("f32 1024", "f32 50", "u32 2")),
    "chains": (models.chains, ("f32 1024,2", "u32 2")),
    "option_paths": (models.option_paths, ("u32 2",)),
    "boids": (models.boids, ("f32 512,2", "f32 512,2")),
    "spheres": (models.spheres, ("f32 16384,3", "f32 32,3")),
    "runge_kutta": (models.runge_kutta, ("f32 256,2",)),
    "neighbours": (models.neighbours, ("f32 4096,32", "f32 64,32")),
    "kernel_matrix": (models.kernel_matrix, ("f32 256,8", "f32 256")),
    "page_rank": (models.page_rank, ("f32 1024,1024",)),
    "regression": (models.regression, ("f32 4096,32", "f32 4096")),
    "covariance": (models.covariance, ("f32 4096,64",)),
    "sparse_product": (models.sparse_product, ("f32 65536", "s32 65536", "s32 65536", "f32 4096")),
    "graph_attention": (models.graph_attention, ("f32 1024,32", "s32 8192", "s32 8192", "f32 2,32")),
    "hamming": (models.hamming, ("u32 256,8", "u32 256,8")),
    "packed_bits": (models.packed_bits, ("u8 1024,1024",)),
    "quantiles": (models.quantiles, ("f32 1024,64",)),
    "table_lookup": (models.table_lookup, ("f32 16384", "f32 256", "f32 256")),
    "joint_histogram": (models.joint_histogram, ("f32 16384", "f32 16384")),
    "ranks": (models.ranks, ("f32 128,512",)),
    "running_mean": (models.running_mean, ("f32 256,4096",)),
    "small_inverses": (models.small_inverses, ("f32 1024,3,3", "f32 1024,3,1")),
    "permuted": (models.permuted, ("f32 65536", "u32 2")),
    "gammas": (models.gammas, ("u32 2",)),
}

PROGRAMS = {name: partial(hlo_text, f, shapes) for name, (f, shapes) in APPLICATIONS.items()}
