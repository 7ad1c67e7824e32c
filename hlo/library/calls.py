"""Ops that a library computes: which ops they are, the one call that each becomes, and the work space that it needs.

The facts about the routines are in lapack.py; codegen/library/ writes the code (docs/adr/0015).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from ..conventions import XLA_KERNEL
from ..dtypes import DType
from ..ir import Instruction
from ..opcodes import Op
from ..records import dataclass, replace
from ..shapes import Shape
from .lapack import LETTERS, Address, Routine, Sizes, routines
from .lapack_checks import complaint
from .lapack_options import options_of, wrong_options
from .transforms import block_bytes

Options = Mapping[str, str | int | bool]

LIBRARY = frozenset({Op.CHOLESKY, Op.TRIANGULAR_SOLVE, Op.FFT, Op.CUSTOM_CALL})
"""Opcodes that no stack emits: a kernel of such an op is a library call."""

ALIGNMENT = 64
"""Alignment in bytes of every array in the work space."""

_TARGET = re.compile(r"lapack_([sdcz])(\w+)_ffi")


@dataclass(frozen=True, slots=True)
class Array:
    """One array of a call, without its batch dimensions.

    It is in the work space at byte `scratch`; if that is None, in result leaf `leaf`; if that is None too, in operand
    `operand`. dims: as the routine sees them; turned: the routine sees the matrix transposed.
    """

    name: str
    dtype: DType
    dims: tuple[int, ...]
    operand: int | None = None
    leaf: int | None = None
    scratch: int | None = None
    turned: bool = False

    @property
    def size(self) -> int:
        size = 1
        for d in self.dims:
            size *= d
        return size


@dataclass(frozen=True, eq=False, slots=True)
class LapackCall:
    """A call of one routine for each element of the batch. scratch: bytes of work space."""

    instruction: Instruction
    routine: Routine
    symbol: str
    dtype: DType
    options: Options
    batch: tuple[int, ...]
    arrays: Mapping[str, Array]
    scratch: int


def lapack_call(i: Instruction) -> LapackCall | None:
    """The call that an op becomes; None if no routine computes it, or the routine does not take its operands."""
    found = _routine(i)
    if found is None or _complaint(i, *found) is not None:
        return None
    routine, dtype, options = found
    main = i.operands[0].shape
    batch = main.dims[: -1 if routine.name == "gtsv" else -2]
    arrays = {name: _array(i, routine, name, len(batch)) for name in _names(routine)}
    if routine.name in ("potrf", "trsm"):
        options, arrays = _oriented(i, routine.name, dtype, options, arrays, len(batch))
    return _placed(i, routine, dtype, options, batch, arrays)


def is_foreign(i: Instruction) -> bool:
    """Whether an op is a custom call of a handler: of no library's routine, and no kernel of XLA's.

    A call that its routine does not take is one, too: of a handler that fails when it runs, as XLA's does.
    """
    if i.opcode is not Op.CUSTOM_CALL or is_sealed(i):
        return False
    return _routine(i) is None or refusal(i) is not None


def is_sealed(instruction: Instruction) -> bool:
    """Whether an instruction stands for a kernel that XLA compiled (xla_kernels/): only its declared operands are
    overwritten.
    """
    target = instruction.attributes.get("custom_call_target", "") if instruction.opcode is Op.CUSTOM_CALL else ""
    return str(target).startswith(XLA_KERNEL)


def refusal(i: Instruction) -> str | None:
    """The error in the operands, results or options of an op that has a routine, in words; None if there is none."""
    found = _routine(i)
    return _complaint(i, *found) if found is not None else None


def _complaint(i: Instruction, routine: Routine, dtype: DType, options: Options) -> str | None:
    if i.shape.is_dynamic or any(o.shape.is_dynamic for o in i.operands):
        return "every dimension needs a fixed size"
    wrong = wrong_options(i, routine) if i.opcode is Op.CUSTOM_CALL else None
    if wrong is not None:
        return wrong
    return complaint(routine, dtype, options, [*(o.shape for o in i.operands), *(s for _, s in i.shape.leaves())])


def work_bytes(i: Instruction) -> int:
    """Bytes of work space that the kernel of a library op needs; 0 for other ops."""
    if i.opcode is Op.FFT:
        return whole_bytes(i) + block_bytes(i)
    call = lapack_call(i) if i.opcode in LIBRARY else None
    return call.scratch if call is not None else 0


def whole_bytes(i: Instruction) -> int:
    """Bytes of an fft's operand when some of its dimensions are transformed, if the result cannot hold it."""
    several = i.attributes["fft_type"] == "IRFFT" and len(i.attributes["fft_length"]) > 1
    return -(-i.operands[0].shape.bytes // ALIGNMENT) * ALIGNMENT if several else 0


def taken_over(i: Instruction) -> tuple[tuple[int, int], ...]:
    """(operand, result leaf) pairs: the library copies the operand into the leaf and computes the leaf in place."""
    if i.opcode is Op.FFT:
        return ((0, 0),) if i.attributes["fft_type"] in ("FFT", "IFFT") else ()
    call = lapack_call(i) if i.opcode in LIBRARY else None
    if call is None:
        return ()
    both = ((a.operand, a.leaf) for a in call.arrays.values())
    return tuple((o, leaf) for o, leaf in both if o is not None and leaf is not None)


# --- which routine ---------------------------------------------------------------------------------------------------


def _routine(i: Instruction) -> tuple[Routine, DType, Options] | None:
    if i.opcode is Op.CUSTOM_CALL:
        return _target(i)
    if i.opcode not in (Op.CHOLESKY, Op.TRIANGULAR_SOLVE):
        return None
    a, dtype = i.attributes, i.shape.dtype
    known = routines(dtype)
    if not known or any(o.shape.dtype is not dtype for o in i.operands):
        return None
    uplo = "L" if a.get("lower", False) else "U"
    if i.opcode is Op.CHOLESKY:
        return replace(known["potrf"], results=("A",)), dtype, {"uplo": uplo}
    options = {
        "uplo": uplo,
        "side": "L" if a.get("left_side", False) else "R",
        "diag": "U" if a.get("unit_diagonal", False) else "N",
        "trans_x": {"N": "N", "T": "T", "A": "C"}[a.get("transpose_a", "NO_TRANSPOSE")[0]],
    }
    return known["trsm"], dtype, options


def is_routine(target: str) -> bool:
    """Whether a custom-call target is one that the library here computes."""
    return _named(target) is not None


def _named(target: str) -> tuple[Routine, DType] | None:
    found = _TARGET.fullmatch(target)
    if found is None:
        return None
    dtype = next(d for d, letter in LETTERS.items() if letter == found[1])
    routine = routines(dtype).get(found[2])
    return (routine, dtype) if routine is not None else None


def _target(i: Instruction) -> tuple[Routine, DType, Options] | None:
    found = _named(str(i.attributes.get("custom_call_target", "")))
    if found is None:
        return None
    routine, dtype = found
    options = options_of(i)
    if "left" in options:
        options["side"] = "L" if options["left"] else "R"
        options["trans"] = ("C" if dtype.is_complex else "T") if options.get("transpose") else "N"
    return routine, dtype, options


# --- where its arrays live -------------------------------------------------------------------------------------------


def _names(routine: Routine) -> list[str]:
    return list(dict.fromkeys((*routine.operands, *routine.results)))


def _array(i: Instruction, routine: Routine, name: str, batch: int) -> Array:
    operand = routine.operands.index(name) if name in routine.operands else None
    leaf = routine.results.index(name) if name in routine.results else None
    shape = _leaf(i, leaf) if operand is None else i.operands[operand].shape
    return Array(name, shape.dtype, shape.dims[batch:], operand, leaf)


def _leaf(i: Instruction, leaf: int | None) -> Shape:
    assert leaf is not None
    return [shape for _, shape in i.shape.leaves()][leaf]


def strides_of(shape: Shape, batch: int, turned: bool) -> tuple[int, ...]:
    """Strides, in elements, of one matrix of the batch, as the routine sees it."""
    strides = shape.strides[batch:]
    return strides[::-1] if turned else strides


def is_dense(dims: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether the elements lie as LAPACK needs them: column by column, without gaps."""
    step = 1
    for size, stride in zip(dims, strides):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _fits(i: Instruction, array: Array, batch: int) -> bool:
    shape = _leaf(i, array.leaf) if array.leaf is not None else i.operands[array.operand or 0].shape
    return is_dense(array.dims, strides_of(shape, batch, array.turned))


def _turned(array: Array) -> Array:
    return replace(array, dims=array.dims[::-1], turned=not array.turned)


_OTHER = MappingProxyType({"L": "U", "U": "L"})
_SIDE = MappingProxyType({"L": "R", "R": "L"})
_TRANSPOSED = MappingProxyType({"N": "T", "T": "N", "C": "R", "R": "C"})
"""The op on aᵀ that equals an op on a. No routine takes R, the conjugate without transposition."""


def _oriented(
    i: Instruction, name: str, dtype: DType, options: Options, arrays: dict[str, Array], batch: int
) -> tuple[Options, dict[str, Array]]:
    """Choose the options so that row-major matrices need no copy.

    LAPACK is column-major and sees a row-major matrix transposed, so the transposed problem is solved instead:
    A = L·Lᴴ ⇔ Aᵀ = conj(L)·Lᵀ, with Aᵀ = Uᴴ·U for U = Lᵀ; op(a)·x = b ⇔ xᵀ·op(a)ᵀ = bᵀ.
    """
    chosen = {key: str(value) for key, value in options.items()}
    result = "A" if name == "potrf" else "C"
    if not _fits(i, arrays[result], batch) and _fits(i, _turned(arrays[result]), batch):
        arrays[result] = _turned(arrays[result])
        if name == "potrf":
            chosen["uplo"] = _OTHER[chosen["uplo"]]
        else:
            chosen["side"] = _SIDE[chosen["side"]]
            chosen["trans_x"] = _TRANSPOSED[chosen["trans_x"]]
    if name == "trsm":
        turned = _turned(arrays["A"])
        other = _TRANSPOSED[chosen["trans_x"]]
        prefer = not _fits(i, arrays["A"], batch) and _fits(i, turned, batch)
        real = not dtype.is_complex
        if chosen["trans_x"] == "R" or (prefer and (other != "R" or real)):
            arrays["A"], chosen["uplo"], chosen["trans_x"] = turned, _OTHER[chosen["uplo"]], other
        if real:
            chosen["trans_x"] = {"C": "T", "R": "N"}.get(chosen["trans_x"], chosen["trans_x"])
    return chosen, arrays


def _placed(
    i: Instruction, routine: Routine, dtype: DType, options: Options, batch: tuple[int, ...], arrays: dict[str, Array]
) -> LapackCall:
    """Give every array a place. An array that does not lie as LAPACK needs it is copied through the work space."""
    main = arrays[routine.operands[0]]
    second = arrays.get("C", main)
    rows, columns = (main.dims[0], main.dims[-1]) if main.dims else (0, 0)
    sizes = Sizes(rows, columns, options, second.dims[0], second.dims[-1])
    kinds = {"T": dtype, "R": dtype.component, "I": DType.S32}
    offset = 0

    def place(array: Array) -> Array:
        nonlocal offset
        placed = replace(array, scratch=offset)
        offset += -(-max(array.size, 1) * array.dtype.bytes // ALIGNMENT) * ALIGNMENT
        return placed

    for name, array in arrays.items():
        if name not in routine.work and not _fits(i, array, len(batch)):
            arrays[name] = place(array)
    for name, (kind, count) in routine.work.items():
        known = arrays.get(name)
        square = (sizes.m, sizes.n) if name in ("L", "R") else (max(count(sizes), 1),)
        arrays[name] = place(known if known is not None else Array(name, kinds[kind], square))
    if Address("info") in routine.call and "info" not in arrays:
        arrays["info"] = place(Array("info", DType.S32, ()))
    symbol = f"scipy_{LETTERS[dtype]}{routine.name}_"
    return LapackCall(i, routine, symbol, dtype, MappingProxyType(options), batch, MappingProxyType(arrays), offset)
