"""LAPACK's and BLAS's routines as data: how a call is written, what it needs for work, and which ops become one.

A call is a line of words, one an argument of the Fortran interface (every argument is an address). `argument` reads
them; only this file knows how they are written:
  A, tau, info   an array, by its name in `operands`, `results` or `work`            Address("A")
  dl+1           an array from its element 1 on                                      Address("dl", 1)
  rows:A cols:A size:w ld:A   a dimension of an array                                Dimension("rows", "A")
  'uplo          a character, from the op's options                                  Character("uplo")
  =low           an integer, from the op's options                                   Integer("low")
  one            the number 1 in the element type                                    Fixed.ONE
  null           no address                                                          Fixed.NULL
`A` (or `X`) is the routine's main matrix. What is an operand and a result at once is copied to the result and computed
there; what is an operand and work, to the work space; other operands are only read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum

from ..dtypes import DType
from ..records import dataclass, field

BLOCK = 32
"""Columns per block of a blocked routine with work space (the largest NB of ILAENV)."""

SMALL, LARGE = 32, 128
"""Routines for at most this many columns are not blocked (ILAENV's NB and NX) and need less work space: SMALL holds for
reduction to tridiagonal form and for reflectors, LARGE for QR and for reduction to Hessenberg form."""

REFLECTORS = 65 * 64
"""Elements that ORMQR and GEHRD want for their block reflectors, besides the columns."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a call: m rows and n columns of the main matrix, those of matrix C if there is one, the op's options."""

    m: int
    n: int
    options: Mapping[str, str | int | bool]
    rows_c: int = 0
    cols_c: int = 0

    @property
    def short(self) -> int:
        return min(self.m, self.n)

    @property
    def long(self) -> int:
        return max(self.m, self.n)


Count = Callable[[Sizes], int]


@dataclass(frozen=True, slots=True)
class Address:
    """An array, less its first elements."""

    array: str
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Dimension:
    """what: rows, cols, size (elements), or ld (the distance of columns: rows, but at least 1)."""

    what: str
    array: str


@dataclass(frozen=True, slots=True)
class Character:
    option: str


@dataclass(frozen=True, slots=True)
class Integer:
    option: str


class Fixed(Enum):
    ONE = "one"
    NULL = "null"


Argument = Address | Dimension | Character | Integer | Fixed

DIMENSIONS = ("rows", "cols", "size", "ld")


def argument(word: str, arrays: Collection[str]) -> Argument:
    """The argument that a word of a call stands for. arrays: the names that the word may use."""
    what, _, name = word.rpartition(":")
    if word in ("one", "null"):
        return Fixed(word)
    if word.startswith("'"):
        return Character(word[1:])
    if word.startswith("="):
        return Integer(word[1:])
    made = Dimension(what, name) if what else Address(name.removesuffix("+1"), int(name.endswith("+1")))
    if made.array not in arrays or (what and what not in DIMENSIONS):
        raise ValueError(f"{word!r} is no argument of a LAPACK call with the arrays {', '.join(arrays)}")
    return made


@dataclass(frozen=True, slots=True)
class Routine:
    """name: LAPACK's, without its type letter. work: array → (kind, elements); kinds are T (the element type), R (its
    real part) and I (a 32-bit integer); every one has at least one element.
    """

    name: str
    operands: tuple[str, ...]
    results: tuple[str, ...]
    call: tuple[Argument, ...]
    work: Mapping[str, tuple[str, Count]] = field(default_factory=dict)


def routine(name: str, operands: str, results: str, call: str, **work: tuple[str, Count]) -> Routine:
    """A row of the tables; operands, results and call are words."""
    arrays = {**dict.fromkeys((*operands.split(), *results.split())), **work, "info": None}
    arguments = tuple(argument(word, arrays) for word in call.split())
    return Routine(name, tuple(operands.split()), tuple(results.split()), arguments, work)


def t(count: Count) -> tuple[str, Count]:
    return "T", count


def real(count: Count) -> tuple[str, Count]:
    return "R", count


def integer(count: Count) -> tuple[str, Count]:
    return "I", count


def _blocked(columns: int, count: int, bound: int, extra: int = 0) -> int:
    """A vector of the columns, or one for each column of a block where there are more than `bound` of `count`."""
    return columns if count <= bound else BLOCK * columns + extra


def _svd_work(s: Sizes) -> int:
    """Enough for the fast paths of GESDD, of its complex form too, and of GESVD."""
    return 4 * s.short * s.short + 7 * s.short + s.long + _blocked(s.m + s.n, s.short, SMALL, REFLECTORS)


def _svd_real_work(s: Sizes) -> int:
    return max(5 * s.short * s.short + 7 * s.short, 2 * s.long * s.short + 2 * s.short * s.short + s.short)


def _qr_work(s: Sizes) -> int:
    return _blocked(s.n, s.n, LARGE)


def _tridiagonal_work(s: Sizes) -> int:
    return _blocked(s.n, s.n, SMALL)


def _hessenberg_work(s: Sizes) -> int:
    return _blocked(s.n, s.n, LARGE, REFLECTORS)


def _schur_work(s: Sizes) -> int:
    return 3 * s.n + _hessenberg_work(s)


def _eig_work(s: Sizes) -> int:
    """With what TREVC3 wants for eigenvectors by blocks of 64."""
    return (4 + 2 * 64) * s.n + _hessenberg_work(s)


def _area(s: Sizes) -> int:
    return s.m * s.n


_SVD = "rows:A cols:A A ld:A s U ld:U VT ld:VT work size:work"
_EIGH = "'mode 'uplo cols:A A ld:A w work size:work"
_TRIDIAGONAL = "'uplo cols:A A ld:A d e tau work size:work info"
_EIG = "'compute_left 'compute_right cols:X X ld:X"
_SCHUR = "'mode 'sort null cols:A A ld:A sdim"
_REFLECT = "'side 'trans rows:C cols:C size:tau A ld:A tau C ld:C work size:work info"


def _reflect_work(s: Sizes) -> int:
    return _blocked(s.cols_c if s.options["side"] == "L" else s.rows_c, s.n, SMALL, REFLECTORS)


_BOTH = (
    routine("potrf", "A", "A info", "'uplo cols:A A ld:A info"),
    routine("getrf", "A", "A pivots info", "rows:A cols:A A ld:A pivots info"),
    routine("geqrf", "A", "A tau", "rows:A cols:A A ld:A tau work size:work info", work=t(_qr_work)),
    routine("trsm", "A C", "C", "'side 'uplo 'trans_x 'diag rows:C cols:C one A ld:A C ld:C"),
    routine(
        "gehrd", "A", "A tau info", "cols:A =low =high A ld:A tau work size:work info", work=t(_hessenberg_work)
    ),
    routine("gtsv", "dl d du C", "dl d du C info", "size:d cols:C dl+1 d du C ld:C info"),
)  # fmt: skip

REAL: dict[str, Routine] = {
    r.name: r
    for r in (
        *_BOTH,
        routine("orgqr", "A tau", "A", "rows:A cols:A size:tau A ld:A tau work size:work info", work=t(_qr_work)),
        routine("ormqr", "A tau C", "C", _REFLECT, A=t(_area), work=t(_reflect_work)),
        routine(
            "geqp3", "A pivots", "A pivots tau", "rows:A cols:A A ld:A pivots tau work size:work info",
            work=t(lambda s: 2 * s.n + _blocked(s.n + 1, s.n, LARGE)),
        ),
        routine(
            "syevd", "A", "A w info", f"{_EIGH} iwork size:iwork info",
            work=t(lambda s: 1 + 6 * s.n + 2 * s.n * s.n), iwork=integer(lambda s: 3 + 5 * s.n),
        ),
        routine("sytrd", "A", "A d e tau info", _TRIDIAGONAL, work=t(_tridiagonal_work)),
        routine(
            "gesdd", "A", "A s U VT info", f"'mode {_SVD} iwork info", work=t(_svd_work),
            iwork=integer(lambda s: 8 * s.short),
        ),
        routine("gesvd", "A", "A s U VT info", f"'mode 'mode {_SVD} info", work=t(_svd_work)),
        routine(
            "geev", "X", "wr wi VL VR info", f"{_EIG} wr wi L ld:L R ld:R work size:work info",
            X=t(_area), L=t(_area), R=t(_area), work=t(_eig_work),
        ),
        routine(
            "gees", "A", "A VS wr wi sdim info", f"{_SCHUR} wr wi VS ld:VS work size:work bwork info",
            work=t(_schur_work), bwork=integer(lambda s: s.n),
        ),
    )
}  # fmt: skip
"""By name, for f32 and f64."""

COMPLEX: dict[str, Routine] = {
    r.name: r
    for r in (
        *_BOTH,
        routine("ungqr", "A tau", "A", "rows:A cols:A size:tau A ld:A tau work size:work info", work=t(_qr_work)),
        routine("unmqr", "A tau C", "C", _REFLECT, A=t(_area), work=t(_reflect_work)),
        routine(
            "geqp3", "A pivots", "A pivots tau", "rows:A cols:A A ld:A pivots tau work size:work rwork info",
            work=t(lambda s: _blocked(s.n + 1, s.n, LARGE)), rwork=real(lambda s: 2 * s.n),
        ),
        routine(
            "heevd", "A", "A w info", f"{_EIGH} rwork size:rwork iwork size:iwork info",
            work=t(lambda s: 2 * s.n + s.n * s.n),
            rwork=real(lambda s: 1 + 5 * s.n + 2 * s.n * s.n), iwork=integer(lambda s: 3 + 5 * s.n),
        ),
        routine("hetrd", "A", "A d e tau info", _TRIDIAGONAL, work=t(_tridiagonal_work)),
        routine(
            "gesdd", "A", "A s U VT info", f"'mode {_SVD} rwork iwork info", work=t(_svd_work),
            rwork=real(_svd_real_work), iwork=integer(lambda s: 8 * s.short),
        ),
        routine(
            "gesvd", "A", "A s U VT info", f"'mode 'mode {_SVD} rwork info", work=t(_svd_work),
            rwork=real(lambda s: 5 * s.short),
        ),
        routine(
            "geev", "X", "w VL VR info", f"{_EIG} w VL ld:VL VR ld:VR work size:work rwork info",
            X=t(_area), work=t(_eig_work), rwork=real(lambda s: 2 * s.n),
        ),
        routine(
            "gees", "A", "A VS w sdim info", f"{_SCHUR} w VS ld:VS work size:work rwork bwork info",
            work=t(_schur_work), rwork=real(lambda s: s.n), bwork=integer(lambda s: s.n),
        ),
    )
}  # fmt: skip
"""By name, for c64 and c128."""

LETTERS: dict[DType, str] = {DType.F32: "s", DType.F64: "d", DType.C64: "c", DType.C128: "z"}
"""Element type → the first letter of a routine's name."""


def routines(dtype: DType) -> Mapping[str, Routine]:
    """The routines of an element type; none for other types."""
    if dtype not in LETTERS:
        return {}
    return COMPLEX if dtype.is_complex else REAL
