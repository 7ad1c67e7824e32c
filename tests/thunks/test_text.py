"""Thunks parse back from their text; what does not parse is refused with its place."""

import pytest

from ...differential.corpus import load_case, read_suite, select
from ...hlo.dtypes import DType
from ...hlo.errors import ParseError
from ...hlo.shapes import array
from ...migration.compile import compile_program
from ...planning.plan import BufferSlice
from ...thunks import (
    ConditionalThunk,
    CopyThunk,
    KernelThunk,
    ProfileThunk,
    SequentialThunk,
    WhileThunk,
    from_text,
    read,
    to_text,
    write,
)
from ...thunks.kinds import (
    ChecksumThunk,
    CollectiveDoneThunk,
    CollectiveStartThunk,
    CompareThunk,
    DeviceIdThunk,
    Exchange,
    FillThunk,
    InfeedThunk,
    NanThunk,
    OutfeedThunk,
    Thunk,
    ZoneThunk,
)
from ...thunks.rows import BY_CLASS, KINDS
from ...thunks.verify import verify_image
from ..support.corpus import SMALL


def test_programs_of_the_small_corpus_parse_back_and_verify():
    for case in select(read_suite(SMALL), None, 40, 3):
        executable = compile_program(load_case(case))
        assert from_text(to_text(executable.thunks)) == executable.thunks, case.id
        verify_image(executable.image)


A, B, P, S = BufferSlice(0, 0, 16), BufferSlice(1, 16, 16), BufferSlice(2, 0, 1), BufferSlice(2, 4, 4)
KERNEL = KernelThunk("add.1", "add_1_kernel", (read(A), write(B)))
INNER = SequentialThunk((KERNEL, CopyThunk("c-1", A, B)), "body")
EVERY = (
    KERNEL,
    KernelThunk('no "name"\n', "a b", ()),
    CopyThunk("while", A, B),
    ProfileThunk("add.1", 0, True),
    ProfileThunk("end", 12, False),
    ChecksumThunk("add.1", 0, A),
    NanThunk("add.1", 3, A, "f32", False),
    NanThunk('"', 3, A, "c64", True),
    FillThunk("add.1", B, 7),
    ZoneThunk("behind argument 0", 4, B, 0),
    CompareThunk("add.1", 5, A, B, "bf16", 2, 16, P),
    SequentialThunk((), "while 1"),
    SequentialThunk((), "branch 12"),
    SequentialThunk((INNER, SequentialThunk((), "é"))),
    WhileThunk("w", SequentialThunk((), "condition"), INNER, P),
    WhileThunk("trip_count", INNER, INNER, P, 0),
    ConditionalThunk("c", P, True, (INNER, INNER)),
    ConditionalThunk("c", S, False, (INNER,)),
    ConditionalThunk("none", S, False, ()),
    DeviceIdThunk("replica", True, S),
    DeviceIdThunk("r", False, S),
    CollectiveStartThunk("a.1", Exchange.ALL_GATHER, "all-reduce a.1", ((0, 2), (3, 1)), A),
    CollectiveStartThunk("channel", Exchange.PERMUTE, "p", (), A, 7),
    CollectiveDoneThunk("a.1", B),
    InfeedThunk("leaf", 1, 2, array(DType.F32, 2, 2), A),
    OutfeedThunk("of", 0, 1, array(DType.S32), S),
)


@pytest.mark.parametrize("thunk", EVERY, ids=range(len(EVERY)))
def test_each_form_parses_back(thunk):
    program = SequentialThunk((thunk, thunk))
    assert from_text(to_text(program)) == program


def test_every_kind_has_a_row_and_a_form_here():
    kinds = set(Thunk.__args__)
    assert {kind.thunk for kind in KINDS} == kinds == {type(thunk) for thunk in EVERY}
    assert len({kind.number for kind in KINDS}) == len(KINDS) == len({kind.word for kind in KINDS})
    for kind in BY_CLASS.values():
        assert {f.name for f in kind.fields} == set(kind.thunk.__dataclass_fields__)
        assert len({f.number for f in kind.fields}) == len(kind.fields)


def test_comments_and_blanks_do_not_count():
    text = "// a program\n\n  main{kernel k@k( read 0 [ 0 : 4 ] ,write 1[0:4])\t// a kernel\n}"
    assert from_text(text).thunks == (KernelThunk("k", "k", (read(BufferSlice(0, 0, 4)), write(BufferSlice(1, 0, 4)))),)


@pytest.mark.parametrize(
    "text, place, message",
    [
        ("", "1:1", "expected a name, found the end"),
        ("kernel a @b()", "1:1", "a program is a sequence (write it in sequence { … })"),
        ("sequence {\n  kernel a b()\n}", "2:12", "expected '@', found 'b'"),
        ("sequence {\n  kernel a @b(0[0:4])\n}", "2:15", "expected read or write, found '0'"),
        ("sequence {\n  kernel a @b(read 0[4:0])\n}", "2:20", "the slice ends at 0, before it begins"),
        ("sequence {\n  kernel a @b(read -1[4:0])\n}", "2:20", "expected a number, found '-1'"),
        ("sequence {\n  copy a 0[0:4] 1[0:4]\n}", "2:17", "expected '->', found '1'"),
        ("sequence {\n  copy a 0[0:4] -> 0[0:4]\n}", "2:3", "copy a: "),
        ("sequence {\n  while w predicate 0[0:1] { a {} }\n}", "2:35", "expected a sequence, found '}'"),
        ("sequence {\n  while w predicate 0[0:1] { a {} copy b 0[0:1] -> 0[1:2] }\n}", "2:35", "expected a sequence"),
        ("sequence {\n  conditional c f32 0[0:4] { a {} }\n}", "2:17", "expected pred or s32, found 'f32'"),
        ('sequence {\n  "\\q" {}\n}', "2:3", "not a JSON string"),
        ("sequence {\n  collective-start a b of c groups {} <- 0[0:1]\n}", "2:3", "'b' is not a valid Exchange"),
        (
            "sequence {\n  collective-start a permute of c groups {{0}} <- 0[0:1]\n}",
            "2:3",
            "collective a: a group that is no pair of devices",
        ),
        ("sequence {\n  collective-start a permute of c groups {0} <- 0[0:1]\n}", "2:43", "expected '{', found '0'"),
        ('sequence {\n  infeed a leaf 0 of 1 "f3[2]" -> 0[0:1]\n}', "2:24", "expected the shape of an array"),
        ('sequence {\n  infeed a leaf 0 of 1 "f32[2,]" -> 0[0:1]\n}', "2:24", "expected the shape of an array"),
        ("sequence {", "1:11", "expected '}', found the end"),
        ("sequence {} sequence {}", "1:13", "nothing may follow the program, found 'sequence'"),
        ("a {" * 200, "1:304", "thunks nest deeper than 100"),
    ],
)
def test_what_does_not_parse_is_refused_with_its_place(text, place, message):
    with pytest.raises(ParseError) as caught:
        from_text(text, "x.txt")
    assert str(caught.value).startswith(f"x.txt:{place}: {message}")
