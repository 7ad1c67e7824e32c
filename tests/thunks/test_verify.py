"""The verifier refuses every structure that would read or write what it must not."""

from dataclasses import replace

import pytest

from ...hlo.devices import Devices
from ...hlo.dtypes import DType
from ...hlo.dynamic_border import DynamicBorder, DynamicDimension
from ...hlo.errors import VerificationError
from ...hlo.shapes import array
from ...planning.plan import Allocation, AllocationKind, BufferSlice
from ...thunks import (
    ConditionalThunk,
    CopyThunk,
    KernelThunk,
    ProfileThunk,
    SequentialThunk,
    WhileThunk,
    read,
    write,
)
from ...thunks.image import Image, Kernel, KernelArgument
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
    ZoneThunk,
)
from ...thunks.verify import verify_image

F4, I1 = array(DType.F32, 4), array(DType.S32)
ALLOCATIONS = (
    Allocation(0, AllocationKind.PARAMETER, 16, 4, 0, F4),
    Allocation(1, AllocationKind.RESULT, 16, 64, 0, F4),
    Allocation(2, AllocationKind.TEMPORARY, 128, 64),
    Allocation(3, AllocationKind.CONSTANT, 4, 64),
    Allocation(4, AllocationKind.PARAMETER, 4, 4, 1, I1),
)
X, Y, T = BufferSlice(0, 0, 16), BufferSlice(1, 0, 16), BufferSlice(2, 64, 16)
PRED, INDEX = BufferSlice(2, 0, 1), BufferSlice(2, 4, 4)
NEGATE = Kernel("negate", "legacy", (KernelArgument(16, 4, False), KernelArgument(16, 16, True)))
CALL = KernelThunk("n", "negate", (read(X), write(Y)))
BODY = SequentialThunk((CopyThunk("c", X, T),), "body")
LOOP = WhileThunk("w", SequentialThunk((), "condition"), BODY, PRED, 3)
BRANCH = ConditionalThunk("i", INDEX, False, (BODY,))
TWO = Devices(2)
IMAGE = Image(
    (F4, I1),
    (F4,),
    ALLOCATIONS,
    {},
    {3: memoryview(bytes(4))},
    (NEGATE,),
    SequentialThunk((CALL, LOOP, BRANCH)),
    devices=TWO,
)


def with_thunks(*thunks):
    return replace(IMAGE, thunks=SequentialThunk(thunks))


def with_allocation(place, /, **changes):
    changed = [replace(a, **changes) if n == place else a for n, a in enumerate(ALLOCATIONS)]
    return replace(IMAGE, allocations=tuple(changed))


def call(*uses, symbol="negate"):
    return with_thunks(KernelThunk("n", symbol, uses))


def nested(depth):
    thunk = BODY
    for _ in range(depth):
        thunk = SequentialThunk((thunk,))
    return with_thunks(thunk)


MARKED = ProfileThunk("a", 0, True), CALL, ProfileThunk("a", 0, False)


DONE = CollectiveDoneThunk("s", T)


def start(source, groups=((0, 1),)):
    return CollectiveStartThunk("s", Exchange.BROADCAST, "all-reduce s", groups, source)


def infeed(leaf=0, leaves=1, shape=F4):
    return InfeedThunk("f", leaf, leaves, shape, T)


def test_a_right_image_passes():
    assert verify_image(with_thunks(*MARKED)) is None
    assert verify_image(IMAGE) is None
    assert verify_image(nested(90)) is None
    feeds = infeed(), infeed(leaves=2), infeed(leaf=1, leaves=2), OutfeedThunk("o", 0, 1, F4, T)
    assert verify_image(with_thunks(start(T), DONE, *feeds)) is None


BORDER = DynamicBorder((DynamicDimension(0, 0, 1),), (), (F4,), 1)

WRONG = {
    "checksum of nothing": (with_thunks(ChecksumThunk("s", 0, BufferSlice(0, 8, 16))), "checksum s: 0[8:24] is out"),
    "two checks": (with_thunks(ChecksumThunk("s", 1, X), ZoneThunk("z", 1, X, 0)), "check z: the id 1 is another's"),
    "large id": (with_thunks(ChecksumThunk("s", 1 << 24, X)), "check s: the id 16777216 is another's, or too large"),
    "integer nan": (with_thunks(NanThunk("n", 0, X, "s32", False)), "check n: s32 has no NaN"),
    "narrow nan": (with_thunks(NanThunk("n", 0, X, "f4e2m1fn", True)), "check n: f4e2m1fn has no NaN"),
    "unknown type": (with_thunks(NanThunk("n", 0, X, "f33", False)), "check n: 16 bytes of f33"),
    "odd type": (with_thunks(NanThunk("n", 0, BufferSlice(0, 0, 15), "f32", False)), "check n: 15 bytes of f32"),
    "filled parameter": (with_thunks(FillThunk("f", X, 0)), "fill f: writes allocation 0, a parameter"),
    "zone outside": (with_thunks(ZoneThunk("z", 0, BufferSlice(9, 0, 1), 0)), "zone z: allocation 9 does not exist"),
    "unequal sides": (
        with_thunks(CompareThunk("c", 0, X, BufferSlice(2, 0, 8), "f32", 0, 0, PRED)),
        "compare c: 16 and 8 bytes, 1 for the flag",
    ),
    "wide flag": (with_thunks(CompareThunk("c", 0, X, T, "f32", 0, 0, INDEX)), "compare c: 16 and 16 bytes, 4 for the"),
    "flag of a parameter": (
        with_thunks(CompareThunk("c", 0, X, T, "f32", 0, 0, BufferSlice(0, 0, 1))),
        "compare c: writes allocation 0, a parameter",
    ),
    "far apart": (with_thunks(CompareThunk("c", 0, X, T, "f32", 1 << 62, 0, PRED)), "compare c: within 46116860184273"),
    "unknown kernel": (call(read(X), write(Y), symbol="f"), "kernel n: no kernel has the symbol 'f'"),
    "arity": (call(read(X)), "kernel n: negate takes 2, given 1"),
    "size": (call(read(BufferSlice(0, 0, 8)), write(Y)), "argument 0: negate takes 16 bytes to read, given 8"),
    "access": (call(read(X), read(Y)), "argument 1: negate takes 16 bytes to write, given 16 to read"),
    "no allocation": (call(read(BufferSlice(9, 0, 16)), write(Y)), "argument 0: allocation 9 does not exist"),
    "negative": (call(read(BufferSlice(0, -16, 16)), write(Y)), "argument 0: 0[-16:0] is outside its 16 bytes"),
    "outside": (call(read(BufferSlice(0, 4, 16)), write(Y)), "argument 0: 0[4:20] is outside its 16 bytes"),
    "huge": (call(read(BufferSlice(0, 2**70, 16)), write(Y)), "is outside its 16 bytes"),
    "read-only": (call(read(T), write(X)), "argument 1: writes allocation 0, a parameter"),
    "alignment": (call(read(T), write(BufferSlice(2, 8, 16))), "argument 1: not aligned to 16 bytes"),
    "overlap": (call(read(BufferSlice(2, 68, 16)), write(T)), "kernel n: two arguments overlap in allocation 2"),
    "copy outside": (with_thunks(CopyThunk("c", X, BufferSlice(2, 120, 16))), "copy c: 2[120:136] is outside"),
    "copy to a constant": (
        with_thunks(CopyThunk("c", BufferSlice(0, 0, 4), BufferSlice(3, 0, 4))),
        "copy c: writes allocation 3, a constant",
    ),
    "predicate": (with_thunks(replace(LOOP, predicate=INDEX)), "while w: a predicate of 4 bytes"),
    "selector": (with_thunks(replace(BRANCH, selector=PRED)), "conditional i: a selector of 1 bytes"),
    "pred branches": (
        with_thunks(replace(BRANCH, selector=PRED, selector_is_pred=True)),
        "conditional i: 1 branches",
    ),
    "no branches": (with_thunks(replace(BRANCH, branches=())), "conditional i: 0 branches"),
    "inside a loop": (
        with_thunks(replace(LOOP, body=SequentialThunk((CopyThunk("deep", T, X),)))),
        "copy deep: writes allocation 0, a parameter",
    ),
    "depth": (nested(110), "thunks nest deeper than 100"),
    "mark without an end": (with_thunks(ProfileThunk("a", 0, True)), "profile a: 0 does not end in its sequence"),
    "end of another": (
        with_thunks(ProfileThunk("a", 0, True), ProfileThunk("a", 1, False)),
        "profile a: ends 1, which is not the last that began",
    ),
    "end without a begin": (with_thunks(ProfileThunk("a", 0, False)), "profile a: ends 0"),
    "one id twice": (with_thunks(*MARKED, SequentialThunk(MARKED)), "profile a: the id 0 is another's"),
    "device-id": (with_thunks(DeviceIdThunk("d", False, T)), "device-id d: a number of 16 bytes"),
    "start outside": (with_thunks(start(BufferSlice(2, 120, 16)), DONE), "collective-start s: 2[120:136] is outside"),
    "done to a parameter": (with_thunks(start(T), replace(DONE, destination=X)), "done s: writes allocation 0"),
    "start alone": (with_thunks(start(T)), "collective-start s: nobody waits for it in its sequence"),
    "done alone": (with_thunks(SequentialThunk((start(T), DONE)), DONE), "s: its sequence did not start it"),
    "start twice": (with_thunks(start(T), start(T), DONE), "collective-start s: started twice before its done"),
    "device 2": (with_thunks(start(T, groups=((0, 2),)), DONE), "s: names a device beyond 2 replicas"),
    "no device": (replace(IMAGE, devices=Devices(0, 1)), "0 replicas × 1 partitions: 1 to 1024 devices"),
    "infeed of another size": (with_thunks(infeed(shape=I1)), "infeed f: leaf 0 of 1, s32[], in 16 bytes"),
    "infeed beyond": (with_thunks(infeed(leaf=1)), "infeed f: leaf 1 of 1"),
    "infeed in part": (with_thunks(infeed(leaves=2)), "infeed f: leaf 0 of 2 stands alone"),
    "infeed out of order": (with_thunks(infeed(leaves=2, leaf=1)), "infeed f: leaf 1 of 2 stands alone"),
    "outfeed in part": (with_thunks(OutfeedThunk("o", 0, 2, F4, T)), "outfeed o: leaf 0 of 2 stands alone"),
    "two kernels": (replace(IMAGE, kernels=(NEGATE, NEGATE)), "two kernels have one symbol"),
    "index": (with_allocation(2, index=7), "allocation 2 says that it is number 7"),
    "negative size": (with_allocation(2, size=-1), "allocation 2 has -1 bytes"),
    "absurd size": (with_allocation(2, size=2**63), "allocation 2 has 9223372036854775808 bytes"),
    "odd alignment": (with_allocation(2, alignment=48), "allocation 2 is aligned to 48 bytes"),
    "page alignment": (with_allocation(2, alignment=4096), "allocation 2 is aligned to 4096 bytes"),
    "parameter of another size": (with_allocation(0, size=32), "parameter 0 has 16 bytes, its allocation 32"),
    "held in another shape": (with_allocation(0, shape=I1), "parameter 0 has 16 bytes, its allocation 16"),
    "two parameters 0": (with_allocation(4, number=0), "allocation 4 is for parameter 0"),
    "parameter 9": (with_allocation(4, number=9), "allocation 4 is for parameter 9"),
    "shared with a result": (with_allocation(0, result=0), "parameter 0 shares memory with result 0"),
    "temporary given": (with_allocation(2, result=0), "allocation 2 is no parameter and gives its memory"),
    "no place": (
        with_allocation(1, kind=AllocationKind.TEMPORARY),
        "result 0 has no place",
    ),
    "two places": (replace(IMAGE, elsewhere={0: T}), "result 0 is in two places"),
    "place of no result": (replace(IMAGE, elsewhere={4: T}), "a place for a result that the program does not have"),
    "place outside": (replace(IMAGE, elsewhere={0: BufferSlice(2, 120, 16)}), "result 0"),
    "no constant": (replace(IMAGE, constants={}), "allocation 3 is a constant without a value"),
    "constant for another": (replace(IMAGE, constants={2: memoryview(bytes(128))}), "a constant for allocation 2"),
    "short constant": (replace(IMAGE, constants={3: memoryview(bytes(3))}), "constant 3 has 3 of 4 bytes"),
    "border: leaf": (
        replace(IMAGE, border=replace(BORDER, parameters=(DynamicDimension(5, 0, 1),))),
        "dynamic dimension 0 of leaf 5 does not exist",
    ),
    "border: size": (
        replace(IMAGE, border=replace(BORDER, parameters=(DynamicDimension(0, 0, 0),))),
        "the size of dimension 0 of leaf 0 is no s32[]",
    ),
    "border: count": (replace(IMAGE, border=replace(BORDER, outputs=4)), "do not fit the number of parameters"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_structures_are_refused(name):
    image, message = WRONG[name]
    with pytest.raises(VerificationError) as caught:
        verify_image(image)
    assert message in str(caught.value)


def test_a_dynamic_border_that_fits_passes():
    assert verify_image(replace(IMAGE, border=BORDER)) is None


def test_two_reads_may_overlap():
    both = Kernel("both", "legacy", (KernelArgument(16, 4, False),) * 2)
    call = KernelThunk("b", "both", (read(T), read(BufferSlice(2, 68, 16))))
    assert verify_image(replace(IMAGE, kernels=(both,), thunks=SequentialThunk((call,)))) is None


def test_many_arguments_take_no_time_of_their_square():
    count = 20_000
    kernel = Kernel("k", "legacy", (KernelArgument(1, 1, False),) * count)
    call = KernelThunk("k", "k", (read(BufferSlice(0, 0, 1)),) * count)
    assert verify_image(replace(IMAGE, kernels=(kernel,), thunks=SequentialThunk((call,)))) is None
