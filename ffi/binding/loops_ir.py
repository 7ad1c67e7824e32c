"""LLVM IR of the loops of the trampoline (trampoline_ir.py): over the noted bytes of a slot, and over its views.

A note: address, number of bytes, the bytes that were there. A view: buffer, array, alignment - 1, reference count,
rank, dtype, flags, the array's dimensions and strides.
"""

from __future__ import annotations

NOTE_WORDS, VIEW_WORDS = 3, 8


def _each(function: str, body: str, *, last: str = "loop", empty: str = "yes", kind: str = "i1") -> str:
    """A function with a loop over %i below %count. body: what the block %loop does, and those behind it up to `last`.

    empty: where it goes without any left: "yes" and "no" return a truth.
    """
    ends = "yes:\n  ret i1 true\nno:\n  ret i1 false\n" if kind == "i1" else f"{empty}:\n  ret void\n"
    return f"""
define internal {kind} {function} {{
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %{empty}, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %{last} ]
{body}  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %{empty}
{ends}}}
"""


_ITEM = """  %offset = mul i64 %i, {bytes}
  %{name} = getelementptr i8, ptr %{name}s, i64 %offset
"""
_NOTE, _VIEW = (_ITEM.format(name=n, bytes=8 * w) for n, w in (("note", NOTE_WORDS), ("view", VIEW_WORDS)))
_ARRAY = """  %array.at = getelementptr i8, ptr %view, i64 8
  %array = load ptr, ptr %array.at, align 8
  %before.at = getelementptr i8, ptr %view, i64 24
"""

_SAME_BYTES = _each(
    "@same_bytes(ptr %notes, i64 %count)",
    _NOTE
    + """  %address = load ptr, ptr %note, align 8
  %size.at = getelementptr i8, ptr %note, i64 8
  %size = load i64, ptr %size.at, align 8
  %expected.at = getelementptr i8, ptr %note, i64 16
  %expected = load ptr, ptr %expected.at, align 8
  switch i64 %size, label %long [ i64 4, label %four
                                  i64 8, label %eight ]
four:
  %a4 = load i32, ptr %address, align 1
  %b4 = load i32, ptr %expected, align 1
  %same4 = icmp eq i32 %a4, %b4
  br i1 %same4, label %following, label %no
eight:
  %a8 = load i64, ptr %address, align 1
  %b8 = load i64, ptr %expected, align 1
  %same8 = icmp eq i64 %a8, %b8
  br i1 %same8, label %following, label %no
long:
  %order = call i32 @memcmp(ptr %address, ptr %expected, i64 %size)
  %same = icmp eq i32 %order, 0
  br i1 %same, label %following, label %no
following:
""",
    last="following",
)
"""Whether all noted bytes are what they were."""

_POINT = _each(
    "@point(ptr %views, i64 %count)",
    _VIEW
    + """  %buffer = load ptr, ptr %view, align 8
  %array.at = getelementptr i8, ptr %view, i64 8
  %array = load ptr, ptr %array.at, align 8
  %mask.at = getelementptr i8, ptr %view, i64 16
  %mask = load i64, ptr %mask.at, align 8
  %data.at = getelementptr i8, ptr %buffer, i64 24
  %data = load i64, ptr %data.at, align 8
  %null = icmp eq i64 %data, 0
  %low = and i64 %data, %mask
  %skew = icmp ne i64 %low, 0
  %rank.at = getelementptr i8, ptr %array, i64 24
  %rank = load i32, ptr %rank.at, align 8
  %rank.was.at = getelementptr i8, ptr %view, i64 32
  %rank.was = load i32, ptr %rank.was.at, align 8
  %other.rank = icmp ne i32 %rank, %rank.was
  %dtype.at = getelementptr i8, ptr %array, i64 56
  %dtype = load i64, ptr %dtype.at, align 8
  %dtype.was.at = getelementptr i8, ptr %view, i64 40
  %dtype.was = load i64, ptr %dtype.was.at, align 8
  %other.dtype = icmp ne i64 %dtype, %dtype.was
  %flags.at = getelementptr i8, ptr %array, i64 64
  %flags = load i32, ptr %flags.at, align 8
  %flags.was.at = getelementptr i8, ptr %view, i64 48
  %flags.was = load i32, ptr %flags.was.at, align 8
  %other.flags = icmp ne i32 %flags, %flags.was
  %b1 = or i1 %null, %skew
  %b2 = or i1 %b1, %other.rank
  %b3 = or i1 %b2, %other.dtype
  %bad = or i1 %b3, %other.flags
  br i1 %bad, label %no, label %shapes
shapes:
  %words = zext i32 %rank to i64
  %bytes = mul i64 %words, 8
  %shape.was.at = getelementptr i8, ptr %view, i64 56
  %shape.was = load ptr, ptr %shape.was.at, align 8
  %dims.at = getelementptr i8, ptr %array, i64 32
  %dims = load ptr, ptr %dims.at, align 8
  %same.dims = call i1 @same_words(ptr %dims, ptr %shape.was, i64 %words)
  br i1 %same.dims, label %strides, label %no
strides:
  %strides.at = getelementptr i8, ptr %array, i64 40
  %steps = load ptr, ptr %strides.at, align 8
  %steps.was = getelementptr i8, ptr %shape.was, i64 %bytes
  %same.steps = call i1 @same_words(ptr %steps, ptr %steps.was, i64 %words)
  br i1 %same.steps, label %set, label %no
set:
  %pointer = getelementptr i8, ptr %array, i64 16
  store i64 %data, ptr %pointer, align 8
""",
    last="set",
)
"""Let the views show the buffers of this call, unless one is not what it was (x.shape = … changes it in place)."""

_SAME_WORDS = _each(
    "@same_words(ptr %a, ptr %b, i64 %count)",
    """  %a.at = getelementptr i64, ptr %a, i64 %i
  %b.at = getelementptr i64, ptr %b, i64 %i
  %a.word = load i64, ptr %a.at, align 8
  %b.word = load i64, ptr %b.at, align 8
  %same = icmp eq i64 %a.word, %b.word
  br i1 %same, label %following, label %no
following:
""",
    last="following",
)
"""Whether two rows of words are equal."""

_COUNT = _each(
    "@count(ptr %views, i64 %count)",
    _VIEW
    + _ARRAY
    + """  %now = load i32, ptr %array, align 8
  store i32 %now, ptr %before.at, align 8
""",
    empty="out",
    kind="void",
)
"""Note the reference counts before the handler runs."""

_KEPT = _each(
    "@kept(ptr %views, i64 %count)",
    _VIEW
    + _ARRAY
    + """  %before = load i32, ptr %before.at, align 8
  %now = load i32, ptr %array, align 8
  %same = icmp eq i32 %now, %before
  br i1 %same, label %following, label %yes
following:
""",
    last="following",
    empty="no",
)
"""Whether anybody kept a view: its reference count has grown."""

LOOPS_IR = "declare i32 @memcmp(ptr, ptr, i64)\n" + _SAME_BYTES + _SAME_WORDS + _POINT + _COUNT + _KEPT
