"""The verifier: every labelled constraint has a module that breaks it, and the corpora break none."""

# ruff: noqa: E501 - tables are read by line

import re
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from ..hlo import verifier as verifier_module
from ..hlo.dtypes import DType
from ..hlo.errors import VerificationError
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opcodes import Op
from ..hlo.parser import parse_module
from ..hlo.shape_inference import INFER, NEEDS_SHAPE, merged
from ..hlo.shapes import Layout, Shape, array
from ..hlo.verifier import verify
from .corpus import sample

F32 = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
S32 = "adds { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }\n"
LESS = "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }\n"
NOT = "no { a = pred[] parameter(0) ROOT r = pred[] not(a) }\n"
NEG = "neg { a = f32[] parameter(0) ROOT r = f32[] negate(a) }\n"
NEG2 = "neg2 { a = f32[2] parameter(0) ROOT r = f32[2] negate(a) }\n"
COMPUTATIONS = F32 + S32 + LESS + NOT + NEG + NEG2


def module_text(parameters: str, root: str) -> str:
    """A module with parameters `a b c …` of the shapes given (split at blanks) and one instruction, the root."""
    lines = [f"{name} = {shape} parameter({n})" for n, (name, shape) in enumerate(zip("abcdefgh", parameters.split()))]
    return COMPUTATIONS + "ENTRY e {\n" + "\n".join(lines) + f"\nROOT root = {root}\n}}"


# (label, shapes of the parameters, the root): one broken constraint a row.
BROKEN = [
    # elementwise
    ("UNARY1", "(f32[])", "f32[] abs(a)"),
    ("UNARY2", "s32[2]", "s32[2] sine(a)"),
    ("UNARY2", "f32[2]", "f32[2] not(a)"),
    ("UNARY2", "u8[2]", "u8[2] sign(a)"),
    ("UNARY2", "s32[2]", "pred[2] is-finite(a)"),
    ("SHAPE1", "f32[2]", "f32[3] abs(a)"),
    ("SHAPE1", "c64[2]", "c64[2] abs(a)"),
    ("SHAPE1", "f32[2]", "f32[2] is-finite(a)"),
    ("BINARY1", "token[] f32[]", "f32[] add(a, b)"),
    ("BINARY2", "f32[2] s32[2]", "f32[2] add(a, b)"),
    ("BINARY3", "f32[2] f32[1]", "f32[2] add(a, b)"),
    ("BINARY3", "f32[2] f32[]", "f32[2] multiply(a, b)"),
    ("BINARY4", "pred[2] pred[2]", "pred[2] subtract(a, b)"),
    ("BINARY4", "f32[2] f32[2]", "f32[2] and(a, b)"),
    ("BINARY4", "f32[2] f32[2]", "f32[2] shift-left(a, b)"),
    ("COMPLEX1", "f16[2] f16[2]", "c64[2] complex(a, b)"),
    ("COMPARE1", "u32[2] u32[2]", "pred[2] compare(a, b), direction=LT, type=SIGNED"),
    ("CLAMP1", "f32[] token[] f32[]", "f32[] clamp(a, b, c)"),
    ("CLAMP2", "s32[] f32[2] f32[]", "f32[2] clamp(a, b, c)"),
    ("CLAMP3", "f32[] f32[2] f32[3]", "f32[2] clamp(a, b, c)"),
    ("SELECT1", "pred[] (f32[]) (f32[])", "(f32[]) select(a, b, c)"),
    ("SELECT2", "s32[] f32[] f32[]", "f32[] select(a, b, c)"),
    ("SELECT3", "pred[] f32[2] f32[3]", "f32[2] select(a, b, c)"),
    ("SELECT4", "pred[3] f32[2] f32[2]", "f32[2] select(a, b, c)"),
    ("CONVERT1", "(f32[])", "f32[] convert(a)"),
    ("CONVERT1", "f32[]", "token[] convert(a)"),
    ("SHAPE1", "f32[2]", "s32[3] convert(a)"),
    ("BITCONVERT1", "f32[]", "token[] bitcast-convert(a)"),
    ("BITCONVERT2", "f64[]", "c64[] bitcast-convert(a)"),
    ("BITCONVERT3", "s8[3]", "s32[] bitcast-convert(a)"),
    ("SHAPE1", "s32[3]", "s8[3] bitcast-convert(a)"),
    ("REDPREC1", "s32[]", "s32[] reduce-precision(a), exponent_bits=5, mantissa_bits=5"),
    ("REDPREC2", "f32[]", "f32[] reduce-precision(a), exponent_bits=0, mantissa_bits=5"),
    ("SCONVERT1", "f32[] s32[]", "s8[] stochastic-convert(a, b)"),
    ("SCONVERT2", "f32[] u16[]", "s8[] stochastic-convert(a, b)"),
    ("SCONVERT3", "f32[2] u32[3]", "s8[2] stochastic-convert(a, b)"),
    # moving data
    ("BITCAST1", "f32[2]", "f32[3] bitcast(a)"),
    ("BITCAST1", "f32[2]", "(f32[2]) bitcast(a)"),
    ("BROADCAST1", "f32[]", "token[] broadcast(a), dimensions={}"),
    ("BROADCAST2", "f32[2]", "f32[2,3] broadcast(a), dimensions={}"),
    ("BROADCAST3", "f32[2]", "f32[2] broadcast(a), dimensions={1}"),
    ("BROADCAST3", "f32[2,2]", "f32[2,2] broadcast(a), dimensions={0,0}"),
    ("BROADCAST4", "f32[1]", "f32[3] broadcast(a), dimensions={0}"),
    ("IOTA1", "f32[]", "pred[2] iota(), iota_dimension=0"),
    ("IOTA2", "f32[]", "s32[2] iota(), iota_dimension=1"),
    ("RESHAPE1", "f32[]", "(f32[]) reshape(a)"),
    ("RESHAPE2", "f32[6]", "f32[2,2] reshape(a)"),
    ("DYNRESHAPE1", "f32[6] s32[]", "f32[<=4] dynamic-reshape(a, b)"),
    ("DYNRESHAPE2", "f32[6] s64[]", "f32[<=6] dynamic-reshape(a, b)"),
    ("REVERSE1", "(f32[])", "(f32[]) reverse(a), dimensions={}"),
    ("REVERSE2", "f32[2]", "f32[2] reverse(a), dimensions={1}"),
    ("TRANSPOSE1", "(f32[])", "(f32[]) transpose(a), dimensions={}"),
    ("TRANSPOSE2", "f32[2,3]", "f32[2,3] transpose(a), dimensions={0,0}"),
    ("SHAPE1", "f32[2,3]", "f32[2,3] transpose(a), dimensions={1,0}"),
    ("SLICE1", "(f32[])", "(f32[]) slice(a), slice={}"),
    ("SLICE2", "f32[2,2]", "f32[1] slice(a), slice={[0:1]}"),
    ("SLICE3", "f32[2]", "f32[3] slice(a), slice={[0:3]}"),
    ("SLICE3", "f32[2]", "f32[0] slice(a), slice={[2:1]}"),
    ("SLICE4", "f32[2]", "f32[2] slice(a), slice={[0:2:0]}"),
    ("PAD1", "(f32[]) f32[]", "(f32[]) pad(a, b), padding=0_0"),
    ("PAD2", "f32[2] f32[1]", "f32[2] pad(a, b), padding=0_0"),
    ("PAD3", "f32[2] s32[]", "f32[2] pad(a, b), padding=0_0"),
    ("PAD4", "f32[2] f32[]", "f32[2] pad(a, b), padding=0_0x0_0"),
    ("PAD5", "f32[2] f32[]", "f32[1] pad(a, b), padding=0_0_-1"),
    ("PAD6", "f32[2] f32[]", "f32[0] pad(a, b), padding=-3_0"),
    ("CONCAT1", "", "f32[2] concatenate(), dimensions={0}"),
    ("CONCAT2", "f32[2]", "f32[2] concatenate(a), dimensions={1}"),
    ("CONCAT3", "f32[2] f32[2,2]", "f32[4] concatenate(a, b), dimensions={0}"),
    ("CONCAT4", "f32[2] s32[2]", "f32[4] concatenate(a, b), dimensions={0}"),
    ("CONCAT5", "f32[2,1] f32[2,2]", "f32[4,2] concatenate(a, b), dimensions={0}"),
    ("DYNSLICE1", "(f32[]) s32[]", "f32[1] dynamic-slice(a, b), dynamic_slice_sizes={1}"),
    ("DYNSLICE2", "f32[2,2] s32[]", "f32[1,1] dynamic-slice(a, b), dynamic_slice_sizes={1,1}"),
    ("DYNSLICE2", "f32[2] f32[]", "f32[1] dynamic-slice(a, b), dynamic_slice_sizes={1}"),
    ("DYNSLICE2", "f32[2,2] s32[] s64[]", "f32[1,1] dynamic-slice(a, b, c), dynamic_slice_sizes={1,1}"),
    ("DYNSLICE2", "f32[2,2] s32[3]", "f32[1,1] dynamic-slice(a, b), dynamic_slice_sizes={1,1}"),
    ("DYNSLICE2", "f32[2,2] s32[1] s32[1]", "f32[1,1] dynamic-slice(a, b, c), dynamic_slice_sizes={1,1}"),
    ("DYNSLICE3", "f32[2] s32[]", "f32[1] dynamic-slice(a, b), dynamic_slice_sizes={1,1}"),
    ("DYNSLICE4", "f32[2] s32[]", "f32[3] dynamic-slice(a, b), dynamic_slice_sizes={3}"),
    ("DUS1", "(f32[]) f32[] s32[]", "f32[1] dynamic-update-slice(a, b, c)"),
    ("DUS2", "f32[2] f32[1]", "f32[2] dynamic-update-slice(a, b)"),
    ("DUS3", "f32[2] s32[1] s32[]", "f32[2] dynamic-update-slice(a, b, c)"),
    ("DUS4", "f32[2] f32[3] s32[]", "f32[2] dynamic-update-slice(a, b, c)"),
    ("GETDIM1", "(f32[])", "s32[] get-dimension-size(a), dimensions={0}"),
    ("GETDIM2", "f32[2]", "s32[] get-dimension-size(a), dimensions={1}"),
    ("SETDIM1", "f32[2] (s32[])", "f32[<=2] set-dimension-size(a, b), dimensions={0}"),
    ("SETDIM2", "f32[2] s32[]", "f32[<=2] set-dimension-size(a, b), dimensions={1}"),
    ("SETDIM3", "f32[2] s64[]", "f32[<=2] set-dimension-size(a, b), dimensions={0}"),
    # control flow
    ("PARAM1", "", "f32[] parameter(0), parameter_replication={true,false}"),
    ("SHAPE1", "f32[]", "(f32[], f32[]) tuple(a)"),
    ("GTE1", "f32[]", "f32[] get-tuple-element(a), index=0"),
    ("GTE2", "(f32[])", "f32[] get-tuple-element(a), index=1"),
    ("ADDDEP1", "f32[] f32[]", "f32[] add-dependency(a, b)"),
    ("AFTERALL1", "f32[]", "token[] after-all(a)"),
    ("CALL1", "f32[]", "f32[] call(a), to_apply=add"),
    ("CALL1", "f32[2] f32[]", "f32[] call(a, b), to_apply=add"),
    ("FUSION1", "f32[]", "f32[] fusion(a), kind=kLoop, calls=add"),
    ("WHILE1", "f32[]", "f32[] while(a), condition=neg, body=neg"),
    ("WHILE1", "f32[]", "f32[] while(a), condition=no, body=neg"),
    ("WHILE2", "pred[]", "pred[] while(a), condition=no, body=neg"),
    ("COND1", "u32[] f32[]", "f32[] conditional(a, b), branch_computations={neg}"),
    ("COND2", "pred[] f32[]", "f32[] conditional(a, b), branch_computations={neg}"),
    ("COND2", "s32[] f32[]", "f32[] conditional(a, b)"),
    ("COND3", "pred[] f32[]", "f32[] conditional(a, b), true_computation=neg, false_computation=neg"),
    ("COND4", "pred[] f32[] f32[2]", "f32[] conditional(a, b, c), true_computation=neg, false_computation=neg"),
    ("COND5", "pred[] f32[] pred[]", "f32[] conditional(a, b, c), true_computation=neg, false_computation=no"),
    ("CUSTOM1", "f32[]", 'f32[] custom-call(a), custom_call_target="t", operand_layout_constraints={}'),
    ("CUSTOM1", "f32[]", 'f32[] custom-call(a), custom_call_target="t", operand_layout_constraints={s32[]}'),
    ("CUSTOM2", "f32[]", 'f32[] custom-call(a), custom_call_target="t", output_to_operand_aliasing={{}: (1, {})}'),
    ("CUSTOM2", "f32[2]", 'f32[] custom-call(a), custom_call_target="t", output_to_operand_aliasing={{}: (0, {})}'),
    ("RNG1", "f32[2] f32[]", "f32[2] rng(a, b), distribution=rng_uniform"),
    ("RNG2", "f64[] f32[]", "f32[2] rng(a, b), distribution=rng_uniform"),
    ("RNGBITS1", "f32[2]", "u32[2] rng-bit-generator(a), algorithm=rng_default"),
    ("RNGBITS2", "u64[2]", "(u64[3], u32[2]) rng-bit-generator(a), algorithm=rng_default"),
    ("RNGSTATE1", "", "u64[3] rng-get-and-update-state(), delta=1"),
    # regions and windows
    ("REDUCE1", "f32[2]", "f32[] reduce(a, a, a), dimensions={0}, to_apply=add"),
    ("REDUCE1", "f32[2] f32[3] f32[] f32[]", "f32[] reduce(a, b, c, d), dimensions={0}, to_apply=add"),
    ("REDUCE2", "f32[2] f32[]", "f32[] reduce(a, b), dimensions={1}, to_apply=add"),
    ("REDUCE2", "f32[2] f32[]", "f32[] reduce(a, b), dimensions={0,0}, to_apply=add"),
    ("REDUCE3", "f32[2] f32[]", "f32[] reduce(a, b), dimensions={0}, to_apply=neg"),
    ("REDUCE3", "f32[2] f32[]", "f32[] reduce(a, b), dimensions={0}, to_apply=less"),
    ("REDUCE3", "f32[2] s32[]", "f32[] reduce(a, b), dimensions={0}, to_apply=add"),
    ("REDUCE3", "s32[2] f32[]", "f32[] reduce(a, b), dimensions={0}, to_apply=add"),
    ("SHAPE1", "f32[2,3] f32[]", "f32[2] reduce(a, b), dimensions={0}, to_apply=add"),
    ("REDWIN1", "f32[2]", "f32[2] reduce-window(a, a, a), window={size=1}, to_apply=add"),
    ("REDWIN2", "f32[2] f32[]", "f32[2] reduce-window(a, b), window={size=1x1}, to_apply=add"),
    ("REDWIN2", "f32[2] f32[]", "f32[2] reduce-window(a, b), window={size=1 stride=0}, to_apply=add"),
    ("REDWIN3", "f32[2] f32[]", "f32[2] reduce-window(a, b), window={size=1}, to_apply=less"),
    ("SELSCAT1", "(f32[]) f32[2] f32[]", "f32[4] select-and-scatter(a, b, c), window={size=2 stride=2}, select=less, scatter=add"),
    ("SELSCAT2", "f32[4] f32[2] f32[]", "f32[4] select-and-scatter(a, b, c), window={size=2 stride=2}, select=add, scatter=add"),
    ("SELSCAT3", "f32[4] f32[2] f32[]", "f32[4] select-and-scatter(a, b, c), window={size=2 stride=2}, select=less, scatter=less"),
    ("SELSCAT4", "f32[4] f32[2] f32[]", "f32[4] select-and-scatter(a, b, c), window={size=2x2}, select=less, scatter=add"),
    ("SELSCAT5", "f32[4] f32[3] f32[]", "f32[4] select-and-scatter(a, b, c), window={size=2 stride=2}, select=less, scatter=add"),
    ("CONV1", "f32[1,4,1] c64[2,1,1]", "f32[1,3,1] convolution(a, b), window={size=2}, dim_labels=b0f_0io->b0f"),
    ("CONV2", "f32[1,4] f32[2,1,1]", "f32[1,3,1] convolution(a, b), window={size=2}, dim_labels=b0f_0io->b0f"),
    ("CONV2", "f32[1,4,1] f32[2,1,1]", "f32[1,3,1] convolution(a, b), window={size=2}, dim_labels=b0f?_0io->b0f"),
    ("CONV3", "f32[2,4,2] f32[2,1,2]", "f32[1,3,2] convolution(a, b), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=2, batch_group_count=2"),
    ("CONV4", "f32[1,4,3] f32[2,2,1]", "f32[1,3,1] convolution(a, b), window={size=2}, dim_labels=b0f_0io->b0f"),
    ("CONV5", "f32[1,4,2] f32[2,1,3]", "f32[1,3,3] convolution(a, b), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=2"),
    ("CONV6", "f32[1,4,2] f32[2,2,2]", "f32[1,3,2] convolution(a, b), window={size=2}, dim_labels=b0f_0io->b0f, batch_group_count=2"),
    ("CONV7", "f32[1,4,1] f32[2,1,1]", "f32[1,3,1] convolution(a, b), window={size=3}, dim_labels=b0f_0io->b0f"),
    ("CONV7", "f32[1,4,1] f32[2,1,1]", "f32[1,3,1] convolution(a, b), dim_labels=b0f_0io->b0f"),
    ("CONV8", "f32[1,4,1] f32[2,1,1]", "f32[1,3,1] convolution(a, b), window={size=2 rhs_dilate=0}, dim_labels=b0f_0io->b0f"),
    ("SHAPE1", "f32[1,4,1] f32[2,1,1]", "f32[1,4,1] convolution(a, b), window={size=2}, dim_labels=b0f_0io->b0f"),
    ("MAP1", "f32[2] f32[3]", "f32[2] map(a, b), dimensions={0}, to_apply=add"),
    ("MAP2", "f32[2,2] f32[2,2]", "f32[2,2] map(a, b), dimensions={1}, to_apply=add"),
    ("MAP3", "f32[2]", "f32[2] map(a), dimensions={0}, to_apply=add"),
    ("MAP3", "f32[2]", "f32[2] map(a), dimensions={0}, to_apply=neg2"),
    ("SORT1", "f32[2] f32[3]", "(f32[2], f32[3]) sort(a, b), dimensions={0}, to_apply=less"),
    ("SORT2", "f32[2]", "f32[2] sort(a), dimensions={1}, to_apply=less"),
    ("SORT3", "f32[2]", "f32[2] sort(a), dimensions={0}, to_apply=add"),
    ("SORT3", "s32[2]", "s32[2] sort(a), dimensions={0}, to_apply=less"),
    ("TOPK1", "f32[]", "(f32[1], s32[1]) topk(a), k=1"),
    ("TOPK2", "f32[2]", "(f32[3], s32[3]) topk(a), k=3"),
    ("SCAN1", "f32[2]", "f32[2] scan(a), dimensions={0}, num_carries=2, to_apply=add"),
    ("SCAN2", "f32[2] f32[]", "(f32[2], f32[]) scan(a, b), dimensions={1}, num_carries=1, to_apply=add"),
    ("SCAN3", "f32[2] s32[]", "(f32[2], s32[]) scan(a, b), dimensions={0}, num_carries=1, to_apply=add"),
    ("SCAN3", "f32[2] pred[]", "pred[] scan(a, b), dimensions={0}, num_carries=1, to_apply=less"),
    # linear algebra
    ("DOT1", "(f32[]) f32[]", "f32[] dot(a, b)"),
    ("DOT2", "f32[2] f32[2]", "f32[] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ("DOT2", "f32[2] f32[2]", "f32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_batch_dims={0}, rhs_batch_dims={0}"),
    ("DOT3", "f32[2] f32[3]", "f32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    ("DOT3", "f32[2] f32[2]", "f32[2] dot(a, b), lhs_contracting_dims={0}"),
    ("DOT4", "f32[2,2] f32[3,2]", "f32[2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_batch_dims={0}, rhs_batch_dims={0}"),
    ("SHAPE1", "f32[2,3] f32[3,4]", "f32[4,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ("SHAPE1", "s32[2] s32[2]", "s8[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    ("SCALEDDOT1", "(f32[]) f32[] f32[] f32[]", "f32[] scaled-dot(a, b, c, d)"),
    ("SCALEDDOT2", "f32[2,4] f32[4,2] f32[2,3] f32[1,2]", "f32[2,2] scaled-dot(a, b, c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ("RAGGED1", "f32[4,2] f32[3,2,5] f32[3]", "f32[4,5] ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"),
    ("RAGGED2", "f32[4,2] f32[3,2,5] s32[3]", "f32[4,5] ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={5}, rhs_group_dims={0}"),
    ("RAGGED3", "f32[4,2] f32[3,2,5] s32[2]", "f32[4,5] ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"),
    ("RAGGED3", "f32[4,3] f32[3,2,5] s32[3]", "f32[4,5] ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={0}, rhs_group_dims={0}"),
    ("FFT1", "c64[]", "c64[] fft(a), fft_type=FFT, fft_length={1}"),
    ("FFT2", "f32[2]", "f32[2] fft(a), fft_type=FFT, fft_length={2}"),
    ("FFT2", "c64[2]", "c64[2] fft(a), fft_type=RFFT, fft_length={2}"),
    ("FFT3", "f32[4]", "c64[3] fft(a), fft_type=RFFT, fft_length={2}"),
    ("FFT3", "c64[4]", "f32[4] fft(a), fft_type=IRFFT, fft_length={4}"),
    ("CHOLESKY1", "s32[2,2]", "s32[2,2] cholesky(a)"),
    ("CHOLESKY2", "f32[2,3]", "f32[2,3] cholesky(a)"),
    ("TRISOLVE1", "f32[2,2] f64[2,2]", "f32[2,2] triangular-solve(a, b)"),
    ("TRISOLVE2", "f32[2,3] f32[2,2]", "f32[2,2] triangular-solve(a, b)"),
    ("TRISOLVE3", "f32[2,2] f32[3,4]", "f32[3,4] triangular-solve(a, b), left_side=true"),
    ("TRISOLVE4", "f32[5,2,2] f32[4,2,2]", "f32[4,2,2] triangular-solve(a, b), left_side=true"),
    ("BATCHNORM1", "s32[2,3] s32[3] s32[3]", "(s32[2,3], s32[3], s32[3]) batch-norm-training(a, b, c), epsilon=0.1, feature_index=1"),
    ("BATCHNORM2", "f32[2,3] f32[3] f32[3]", "(f32[2,3], f32[3], f32[3]) batch-norm-training(a, b, c), epsilon=0.1, feature_index=2"),
    ("BATCHNORM3", "f32[2,3] f32[3] f32[2]", "(f32[2,3], f32[3], f32[3]) batch-norm-training(a, b, c), epsilon=0.1, feature_index=1"),
    ("BATCHNORM3", "f32[2,3] f32[3] f32[3] f32[3] f32[]", "f32[2,3] batch-norm-inference(a, b, c, d, e), epsilon=0.1, feature_index=1"),
    ("BATCHNORM4", "f32[2,3] f32[3] f32[3] f32[3] f32[3]", "(f32[2,3], f32[3], f32[3]) batch-norm-grad(a, b, c, d, e), epsilon=0.1, feature_index=1"),
    # asynchronous pairs, collectives, transfers
    ("ASYNC1", "f32[]", "f32[] async-start(a), calls=neg"),
    ("ASYNC2", "f32[2]", "((f32[2]), f32[2]) async-start(a), calls=neg"),
    ("ASYNC2", "f32[]", "((f32[]), f32[2]) async-start(a), calls=neg"),
    ("ASYNC3", "((f32[]),f32[])", "((f32[]), f32[]) async-update(a)"),
    ("ASYNC3", "((f32[]),f32[])", "f32[] async-done(a)"),
    ("COPY1", "f32[2]", "(f32[2], f32[3], u32[]) copy-start(a)"),
    ("COPY2", "(f32[2],f32[2],u32[])", "f32[2] copy-done(a)"),
    ("COLL1", "token[]", "token[] all-reduce(a), to_apply=add"),
    ("COLL2", "f32[2]", "f32[2] all-reduce(a), replica_groups={{0,1},{1}}, to_apply=add"),
    ("COLL2", "f32[2]", "f32[2] all-reduce(a), replica_groups={{0},{}}, to_apply=add"),
    ("COLL3", "f32[2]", "f32[4] all-gather(a), dimensions={1}"),
    ("COLL4", "f32[2]", "f32[5] all-gather(a), dimensions={0}"),
    ("COLL4", "f32[4,2]", "f32[2,1] reduce-scatter(a), dimensions={0}, to_apply=add"),
    ("COLL5", "f32[2]", "f32[4] all-gather-start(a), dimensions={0}"),
    ("COLL6", "f32[2]", "f32[4] all-gather-done(a)"),
    ("COLL7", "f32[4]", "f32[5] all-to-all(a), dimensions={0}"),
    ("COLL7", "", "f32[4] all-to-all(), dimensions={0}"),
    ("COLL8", "f32[4]", "f32[4] collective-permute(a), source_target_pairs={{0,1,2}}"),
    ("COLL8", "f32[4]", "f32[4] collective-permute(a), source_target_pairs={{0,1},{2,1}}"),
    ("COLL9", "f32[4]", "f32[4] collective-permute-start(a), source_target_pairs={{0,1}}"),
    ("COLL10", "f32[4] f32[4]", "f32[4] ragged-all-to-all(a, b)"),
    ("SHAPE1", "", "s32[] replica-id()"),
    ("INFEED1", "f32[]", "(f32[], token[]) infeed(a)"),
    ("INFEED2", "token[]", "f32[] infeed(a)"),
    ("OUTFEED1", "f32[] token[]", "token[] outfeed(a, b), outfeed_shape=s32[]"),
    ("OUTFEED2", "f32[] f32[]", "token[] outfeed(a, b)"),
    ("SEND1", "f32[] f32[]", "(f32[], u32[], token[]) send(a, b)"),
    ("SEND2", "f32[]", "token[] send-done(a)"),
    ("RECV1", "f32[]", "(f32[], u32[], token[]) recv(a)"),
    ("RECV1", "token[]", "(f32[], token[]) recv(a)"),
    ("RECV2", "f32[]", "(f32[], token[]) recv-done(a)"),
]  # fmt: skip

GATHER = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}"
SCATTER = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add"


def gather(old: str, new: str, shapes: str = "f32[5,3] s32[2,1]") -> tuple[str, str]:
    assert old in GATHER
    return shapes, "f32[2,3] gather(a, b), " + GATHER.replace(old, new)


def scatter(old: str, new: str, shapes: str = "f32[5,3] s32[2,1] f32[2,3]") -> tuple[str, str]:
    assert old in SCATTER
    return shapes, "f32[5,3] scatter(a, b, c), " + SCATTER.replace(old, new)


BROKEN += [
    ("GATHER1", *gather("", "", "(f32[]) s32[2,1]")),
    ("GATHER2", *gather("", "", "f32[5,3] f32[2,1]")),
    ("GATHER2", *gather("index_vector_dim=1", "index_vector_dim=3")),
    ("GATHER3", *gather("offset_dims={1}", "offset_dims={5}")),
    ("GATHER3", *gather("offset_dims={1}", "offset_dims={1,0}")),
    ("GATHER4", *gather("start_index_map={0}", "start_index_map={0,1}")),
    ("GATHER4", *gather("start_index_map={0}", "start_index_map={2}")),
    ("GATHER5", *gather("collapsed_slice_dims={0}", "collapsed_slice_dims={2}")),
    ("GATHER5", *gather("collapsed_slice_dims={0}", "collapsed_slice_dims={1,0}")),
    ("GATHER6", *gather("slice_sizes={1,3}", "slice_sizes={1}")),
    ("GATHER6", *gather("slice_sizes={1,3}", "slice_sizes={2,3}")),
    ("GATHER6", *gather("slice_sizes={1,3}", "slice_sizes={{1},{3}}")),
    ("GATHER6", *gather("slice_sizes={1,3}", "slice_sizes={1,4}")),
    ("GATHER7", *gather("collapsed_slice_dims={0}", "collapsed_slice_dims={}, operand_batching_dims={0}")),
    ("GATHER7", *gather("collapsed_slice_dims={0}", "collapsed_slice_dims={}, operand_batching_dims={0}, start_indices_batching_dims={0}")),
    ("GATHER8", *gather("collapsed_slice_dims={0}", "collapsed_slice_dims={}")),
    ("SHAPE1", "f32[5,3] s32[2,1]", "f32[3,2] gather(a, b), " + GATHER),
    ("SCATTER1", *scatter("", "", "(f32[]) s32[2,1] f32[2,3]")),
    ("SCATTER1", *scatter("", "", "f32[5,3] s32[2,1] s32[2,3]")),
    ("SCATTER1", "f32[5,3] s32[2,1] f32[2,3] f32[2,3]", "f32[5,3] scatter(a, b, c, d), " + SCATTER),
    ("SCATTER1", "f32[5,3] f32[5] s32[2,1] f32[2,3] f32[2]", "(f32[5,3], f32[5]) scatter(a, b, c, d, e), " + SCATTER),
    ("SCATTER2", *scatter("", "", "f32[5,3] f32[2,1] f32[2,3]")),
    ("SCATTER3", *scatter("update_window_dims={1}", "update_window_dims={2}")),
    ("SCATTER4", *scatter("scatter_dims_to_operand_dims={0}", "scatter_dims_to_operand_dims={2}")),
    ("SCATTER5", *scatter("inserted_window_dims={0}", "inserted_window_dims={2}")),
    ("SCATTER6", *scatter("inserted_window_dims={0}", "inserted_window_dims={}")),
    ("SCATTER7", *scatter("", "", "f32[5,3] s32[2,1] f32[2,4]")),
    ("SCATTER8", *scatter("", "", "f32[5,3] s32[2,1] f32[4,3]")),
    ("SCATTER9", *scatter("inserted_window_dims={0}", "inserted_window_dims={}, input_batching_dims={0}")),
    ("SCATTER10", *scatter("to_apply=add", "to_apply=less")),
    ("SCATTER10", *scatter("to_apply=add", "to_apply=neg")),
    ("SCATTER10", *scatter("to_apply=add", "to_apply=adds")),
]  # fmt: skip


def label_of(module: Module) -> str:
    """The label of the constraint that a module breaks."""
    with pytest.raises(VerificationError) as raised:
        verify(module)
    label = re.search(r"\[([A-Z]+\d+)\]", raised.value.message)
    assert label, raised.value.message
    return label[1]


@pytest.mark.parametrize("row", BROKEN, ids=lambda r: f"{r[0]}: {r[2][:60]}")
def test_broken_constraint(row):
    label, parameters, root = row
    module = parse_module(module_text(parameters, root), "broken.hlo")
    with pytest.raises(VerificationError) as raised:
        verify(module)
    assert f"[{label}]" in raised.value.message, raised.value.message
    assert "'root'" in raised.value.message
    assert str(raised.value).startswith("broken.hlo:")


# -- the header ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("label", "header"),
    [
        ("ENTRY1", "entry_computation_layout={(f32[2])->f32[]}"),
        ("ENTRY1", "entry_computation_layout={()->f32[2]}"),
        ("ALIAS1", "input_output_alias={ {}: (1, {}) }"),
        ("ALIAS1", "input_output_alias={ {0}: (0, {}) }"),
        ("ALIAS1", "input_output_alias={ {}: (0, {0}) }"),
        ("DONOR1", "buffer_donor={ (3, {}) }"),
    ],
)
def test_broken_header(label, header):
    module = parse_module(f"HloModule m, {header}\nENTRY e {{ ROOT p = f32[2] parameter(0) }}")
    assert label_of(module) == label


def test_aliased_shapes_agree():
    module = parse_module(
        "HloModule m, input_output_alias={ {}: (0, {}) }\nENTRY e { p = f32[2] parameter(0) ROOT c = s32[2] convert(p) }"
    )
    assert label_of(module) == "ALIAS1"


# -- what text cannot say, and a pass may build ----------------------------------------------------------------------------
def parameter(number: int = 0, name: str = "p", shape: Shape | None = None) -> Instruction:
    return Instruction(
        Op.PARAMETER, name, shape or array(DType.F32, 2), (), MappingProxyType({"parameter_number": number})
    )


def module_of(
    *instructions: Instruction, root: Instruction | None = None, extra: tuple[Computation, ...] = ()
) -> Module:
    entry = Computation("e", instructions, root or instructions[-1])
    return Module("m", (*extra, entry), entry)


def structures():
    p = parameter()
    minus = Instruction(Op.NEGATE, "n", p.shape, (p,))
    inner = parameter(name="i")
    body = Computation("body", (inner,), inner)
    entry = Computation("e", (p,), p)
    yield "MODULE1", Module("m", (), entry)
    yield "MODULE2", module_of(p, extra=(Computation("e", (inner,), inner),))
    yield "MODULE3", module_of(p, Instruction(Op.CALL, "c", p.shape, (p,), {"to_apply": body}))
    yield "COMP1", module_of(p, root=minus)
    yield "COMP2", module_of(minus, p)
    yield "COMP3", module_of(p, Instruction(Op.NEGATE, "p", p.shape, (p,)))
    yield "COMP4", module_of(parameter(1))
    yield "COMP5", module_of(p, minus.replace(attributes={"control-predecessors": ("q",)}))
    yield "ARITY1", module_of(p, minus.replace(operands=(p, p)))
    yield "ATTR1", module_of(p, Instruction(Op.TRANSPOSE, "t", p.shape, (p,)))
    yield "LAYOUT1", module_of(parameter(shape=replace(p.shape, layout=Layout((1,)))))
    yield "REDUCE3", module_of(p, Instruction(Op.REDUCE, "r", p.shape, (p, p), {"dimensions": (), "to_apply": "add"}))
    constant = parse_module("ENTRY e { ROOT c = f32[] constant(1) }").entry.root
    yield "SHAPE1", module_of(constant.replace(shape=array(DType.F32, 3)))


@pytest.mark.parametrize(("label", "module"), list(structures()), ids=lambda v: v if isinstance(v, str) else "")
def test_broken_structure(label, module):
    assert label_of(module) == label


# -- labels and tables ---------------------------------------------------------------------------------------------------
HLO = Path(verifier_module.__file__).parent
RULE_FILES = [*HLO.glob("shape_inference*.py"), HLO / "verifier.py"]


def labels(pattern: str) -> set[str]:
    return {m for path in RULE_FILES for m in re.findall(pattern, path.read_text())}


RAISED = r'["\[]([A-Z]+\d+)["\]]'


def test_every_label_has_a_failing_module():
    tested = {row[0] for row in BROKEN} | {label for label, _ in structures()} | {"ENTRY1", "ALIAS1", "DONOR1"}
    assert labels(RAISED) == tested


def test_every_label_is_explained_in_a_docstring():
    assert labels(RAISED) == labels(r"(?<![.\w])([A-Z]+\d+):\s")


def test_every_opcode_has_a_rule():
    assert INFER.keys() == set(Op)
    assert set(Op) > NEEDS_SHAPE


def test_two_rules_for_one_opcode_are_a_mistake():
    with pytest.raises(ValueError, match="two shape rules for abs"):
        merged({Op.ABS: INFER[Op.ABS]}, {Op.ABS: INFER[Op.ABS]})


# -- what must pass ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("parameters", "root"),
    [
        ("f32[2] bf16[2]", "f32[2] add(a, b)"),
        ("s8[2,3] s8[3,4]", "s32[2,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        ("bf16[2] bf16[2]", "f32[] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        ("f32[2]{0}", "f32[2] copy(a)"),
        ("f32[<=4]", "f32[<=4] abs(a)"),
        ("f32[?]", "f32[?] abs(a)"),
        ("pred[8]", "u8[8] bitcast-convert(a)"),
        ("s4[6]", "s8[3] bitcast(a)"),
        ("f32[5,3] s32[2]", "f32[2,3] gather(a, b), " + GATHER),
        ("f32[2,1,4] s32[3]", "f32[1,1,1] dynamic-slice(a, b), dynamic_slice_sizes={1,1,1}"),
        ("f32[4,2] f32[3,2,5] s32[3]", "f32[4,5] ragged-dot(a, b, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"),
        ("f32[4,6] f32[4,6] s32[3]", "f32[3,6,6] ragged-dot(a, b, c), lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}"),
        ("f32[2,64] f32[64,2] f32[2,2] f32[2,2]", "f32[2,2] scaled-dot(a, b, c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        ("f32[5] f32[]", "f32[2] reduce-window(a, b), window={size=2 stride=2 rhs_dilate=2}, to_apply=add"),
        ("f32[2] f32[]", "f32[] scan(a, b), dimensions={0}, num_carries=1, to_apply=add"),
        ("f32[4]", "c64[3] fft(a), fft_type=RFFT, fft_length={4}"),
        ("c64[3]", "f32[4] fft(a), fft_type=IRFFT, fft_length={4}"),
    ],
)  # fmt: skip
def test_accepted(parameters, root):
    verify(parse_module(module_text(parameters, root)))


XLA_REFUSES_TOO = {"bdf3f1e09cb51b15": "bitcast-convert f32[33] → f32[33,16]: other sizes in bits"}
"""Modules of xla_modules that break a rule of XLA's own verifier."""


def corpus_failures(pattern: str, count: int | None) -> dict[str, str]:
    failures = {}
    for path in sample(pattern, count):
        try:
            verify(parse_module(path.read_text(), path.name))
        except VerificationError as error:
            failures[path.stem] = str(error)
    return failures


@pytest.mark.parametrize(
    ("pattern", "count"), [("xla_modules/*.hlo", 300), ("op_cases/*.hlo", 100), ("jax_programs/*/*.hlo", 20)]
)
def test_corpus_is_accepted(pattern, count):
    failures = corpus_failures(pattern, count)
    assert {k: v for k, v in failures.items() if k not in XLA_REFUSES_TOO} == {}


@pytest.mark.deep
@pytest.mark.parametrize("pattern", ["xla_modules/*.hlo", "op_cases/*.hlo", "jax_programs/*/*.hlo"])
def test_whole_corpus_is_accepted(pattern):
    assert corpus_failures(pattern, None).keys() == (
        set(XLA_REFUSES_TOO) if pattern.startswith("xla_modules") else set()
    )
