"""LLVM IR of the functions that thunks of checks.py call. All parameters are pointers; numbers are passed as such."""

from __future__ import annotations

_EACH_BYTE = """entry:
  %n = ptrtoint ptr %bytes to i64
  %s = ptrtoint ptr %seed to i64
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %at = getelementptr i8, ptr %data, i64 %i
  %byte = call i8 @testbed_pattern(i64 %i, i64 %s)
  %next = add i64 %i, 1"""
"""A loop over bytes, to the middle of its body: %at is the address of one, %byte what the pattern has there."""

CHECK_IR = (
    """
declare i64 @llvm.fshl.i64(i64, i64, i64)
declare double @llvm.fabs.f64(double)

define internal void @testbed_note(ptr %buffer, i64 %mark, i64 %number) {
  %count = load i64, ptr %buffer
  %b1 = getelementptr i64, ptr %buffer, i64 1
  %most = load i64, ptr %b1
  %more = add i64 %count, 1
  store i64 %more, ptr %buffer
  %fits = icmp ult i64 %count, %most
  br i1 %fits, label %keep, label %done
keep:
  %twice = mul i64 %count, 2
  %first = add i64 %twice, 2
  %at = getelementptr i64, ptr %buffer, i64 %first
  store i64 %mark, ptr %at
  %behind = getelementptr i64, ptr %at, i64 1
  store i64 %number, ptr %behind
  br label %done
done:
  ret void
}

define internal i64 @testbed_mixed(i64 %sum, i64 %word) alwaysinline {
  %x = xor i64 %sum, %word
  %m = mul i64 %x, -7046029254386353131 ; an odd number without a pattern (2^64 / the golden ratio)
  %r = call i64 @llvm.fshl.i64(i64 %m, i64 %m, i64 29)
  ret i64 %r
}

define void @testbed_checksum(ptr %events, ptr %mark, ptr %data, ptr %bytes) {
entry:
  %size = ptrtoint ptr %bytes to i64
  %words = lshr i64 %size, 3
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %sum = phi i64 [ %size, %entry ], [ %mixed, %body ]
  %more = icmp ult i64 %i, %words
  br i1 %more, label %body, label %rest
body:
  %at = getelementptr i64, ptr %data, i64 %i
  %word = load i64, ptr %at, align 1
  %mixed = call i64 @testbed_mixed(i64 %sum, i64 %word)
  %next = add i64 %i, 1
  br label %head
rest:
  %begin = shl i64 %words, 3
  br label %byte.head
byte.head:
  %j = phi i64 [ %begin, %rest ], [ %byte.next, %byte.body ]
  %partial = phi i64 [ %sum, %rest ], [ %byte.mixed, %byte.body ]
  %byte.more = icmp ult i64 %j, %size
  br i1 %byte.more, label %byte.body, label %done
byte.body:
  %byte.at = getelementptr i8, ptr %data, i64 %j
  %byte = load i8, ptr %byte.at
  %wide = zext i8 %byte to i64
  %byte.mixed = call i64 @testbed_mixed(i64 %partial, i64 %wide)
  %byte.next = add i64 %j, 1
  br label %byte.head
done:
  %last = call i64 @testbed_mixed(i64 %partial, i64 %size)
  %id = ptrtoint ptr %mark to i64
  call void @testbed_note(ptr %events, i64 %id, i64 %last)
  ret void
}

define internal i64 @testbed_element(ptr %data, i64 %i, i64 %width) alwaysinline {
  switch i64 %width, label %eight [ i64 1, label %one i64 2, label %two i64 4, label %four ]
one:
  %p1 = getelementptr i8, ptr %data, i64 %i
  %v1 = load i8, ptr %p1
  %w1 = zext i8 %v1 to i64
  ret i64 %w1
two:
  %p2 = getelementptr i16, ptr %data, i64 %i
  %v2 = load i16, ptr %p2, align 1
  %w2 = zext i16 %v2 to i64
  ret i64 %w2
four:
  %p4 = getelementptr i32, ptr %data, i64 %i
  %v4 = load i32, ptr %p4, align 1
  %w4 = zext i32 %v4 to i64
  ret i64 %w4
eight:
  %p8 = getelementptr i64, ptr %data, i64 %i
  %v8 = load i64, ptr %p8, align 1
  ret i64 %v8
}

define internal i1 @testbed_within(i64 %x, i64 %first, i64 %last) alwaysinline {
  %above = icmp uge i64 %x, %first
  %below = icmp ule i64 %x, %last
  %both = and i1 %above, %below
  ret i1 %both
}

define void @testbed_find(ptr %events, ptr %mark, ptr %data, ptr %count, ptr %width, ptr %mask, ptr %first, ptr %last) {
entry:
  %n = ptrtoint ptr %count to i64
  %w = ptrtoint ptr %width to i64
  %m = ptrtoint ptr %mask to i64
  %f = ptrtoint ptr %first to i64
  %l = ptrtoint ptr %last to i64
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %x = call i64 @testbed_element(ptr %data, i64 %i, i64 %w)
  %bits = and i64 %x, %m
  %hit = call i1 @testbed_within(i64 %bits, i64 %f, i64 %l)
  %next = add i64 %i, 1
  br i1 %hit, label %found, label %head
found:
  %id = ptrtoint ptr %mark to i64
  call void @testbed_note(ptr %events, i64 %id, i64 %i)
  %second = or i64 %id, 1
  call void @testbed_note(ptr %events, i64 %second, i64 %x)
  br label %done
done:
  ret void
}

define internal i8 @testbed_pattern(i64 %i, i64 %seed) alwaysinline {
  %p = mul i64 %i, 37
  %q = add i64 %p, %seed
  %b = trunc i64 %q to i8
  ret i8 %b
}

define void @testbed_fill(ptr %data, ptr %bytes, ptr %seed) {
"""
    + _EACH_BYTE
    + """
  store i8 %byte, ptr %at
  br label %head
done:
  ret void
}

define void @testbed_zone(ptr %events, ptr %mark, ptr %data, ptr %bytes, ptr %seed) {
"""
    + _EACH_BYTE
    + """
  %found = load i8, ptr %at
  %same = icmp eq i8 %found, %byte
  br i1 %same, label %head, label %damaged
damaged:
  %id = ptrtoint ptr %mark to i64
  call void @testbed_note(ptr %events, i64 %id, i64 %i)
  br label %done
done:
  ret void
}

define internal double @testbed_value(i64 %bits, i64 %code) alwaysinline {
  switch i64 %code, label %none [ i64 1, label %f32 i64 2, label %f64 i64 3, label %bf16 i64 4, label %f16 ]
f32:
  %low = trunc i64 %bits to i32
  %single = bitcast i32 %low to float
  %v1 = fpext float %single to double
  ret double %v1
f64:
  %v2 = bitcast i64 %bits to double
  ret double %v2
bf16:
  %b3 = trunc i64 %bits to i32
  %shifted = shl i32 %b3, 16
  %s3 = bitcast i32 %shifted to float
  %v3 = fpext float %s3 to double
  ret double %v3
f16: ; exponent and mantissa, where those of f64 are; 2^1008 is the difference of the exponents' zeros
  %m4 = and i64 %bits, 32767
  %e4 = shl i64 %m4, 42
  %d4 = bitcast i64 %e4 to double
  %a4 = fmul double %d4, 0x7EF0000000000000
  %n4 = fneg double %a4
  %sign = icmp ugt i64 %bits, 32767
  %v4 = select i1 %sign, double %n4, double %a4
  ret double %v4
none:
  ret double 0.0
}

define internal double @testbed_largest(ptr %data, i64 %n, i64 %w, i64 %m, i64 %infinity, i64 %code) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %most = phi double [ 0.0, %entry ], [ %larger, %body ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %x = call i64 @testbed_element(ptr %data, i64 %i, i64 %w)
  %bits = and i64 %x, %m
  %finite = icmp ult i64 %bits, %infinity
  %value = call double @testbed_value(i64 %bits, i64 %code)
  %above = fcmp ogt double %value, %most
  %takes = and i1 %finite, %above
  %larger = select i1 %takes, double %value, double %most
  %next = add i64 %i, 1
  br label %head
done:
  ret double %most
}

define void @testbed_compare(ptr %events, ptr %mark, ptr %left, ptr %right, ptr %count, ptr %width, ptr %mask,
    ptr %infinity, ptr %first, ptr %last, ptr %steps, ptr %code, ptr %scaled, ptr %flag) {
entry:
  %n = ptrtoint ptr %count to i64
  %w = ptrtoint ptr %width to i64
  %m = ptrtoint ptr %mask to i64
  %inf = ptrtoint ptr %infinity to i64
  %f = ptrtoint ptr %first to i64
  %l = ptrtoint ptr %last to i64
  %s = ptrtoint ptr %steps to i64
  %c = ptrtoint ptr %code to i64
  %bits = ptrtoint ptr %scaled to i64
  %part = bitcast i64 %bits to double
  %scales = icmp ne i64 %bits, 0
  br i1 %scales, label %measure, label %start
measure:
  %most = call double @testbed_largest(ptr %right, i64 %n, i64 %w, i64 %m, i64 %inf, i64 %c)
  %distance = fmul double %most, %part
  br label %start
start:
  %allowed = phi double [ 0.0, %entry ], [ %distance, %measure ]
  br label %head
head:
  %i = phi i64 [ 0, %start ], [ %next, %going ]
  %at = phi i64 [ -1, %start ], [ %at.next, %going ]
  %bad = phi i64 [ 0, %start ], [ %bad.next, %going ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %a = call i64 @testbed_element(ptr %left, i64 %i, i64 %w)
  %b = call i64 @testbed_element(ptr %right, i64 %i, i64 %w)
  %equal = icmp eq i64 %a, %b
  br i1 %equal, label %going, label %unequal
unequal:
  %am = and i64 %a, %m
  %bm = and i64 %b, %m
  %a.nan = call i1 @testbed_within(i64 %am, i64 %f, i64 %l)
  %b.nan = call i1 @testbed_within(i64 %bm, i64 %f, i64 %l)
  %float = icmp ne i64 %m, 0
  %nans = and i1 %a.nan, %b.nan
  %both.nan = and i1 %nans, %float
  br i1 %both.nan, label %going, label %numbers
numbers:
  %a.special = icmp uge i64 %am, %inf
  %b.special = icmp uge i64 %bm, %inf
  %special = or i1 %a.special, %b.special
  %plain = xor i1 %special, true
  %usable = and i1 %plain, %float
  br i1 %usable, label %near, label %wrong
near:
  %a.sign = icmp ne i64 %a, %am
  %b.sign = icmp ne i64 %b, %bm
  %alike = icmp eq i1 %a.sign, %b.sign
  %above = icmp ugt i64 %am, %bm
  %up = sub i64 %am, %bm
  %down = sub i64 %bm, %am
  %apart = select i1 %above, i64 %up, i64 %down
  %across = add i64 %am, %bm
  %far = select i1 %alike, i64 %apart, i64 %across
  %wanted = icmp ne i64 %s, 0
  %few = icmp ule i64 %far, %s
  %by.steps = and i1 %few, %wanted
  %va = call double @testbed_value(i64 %a, i64 %c)
  %vb = call double @testbed_value(i64 %b, i64 %c)
  %difference = fsub double %va, %vb
  %size = call double @llvm.fabs.f64(double %difference)
  %small = fcmp ole double %size, %allowed
  %by.scale = and i1 %small, %scales
  %fine = or i1 %by.steps, %by.scale
  br i1 %fine, label %going, label %wrong
wrong:
  %none = icmp eq i64 %bad, 0
  %at.here = select i1 %none, i64 %i, i64 %at
  %bad.more = add i64 %bad, 1
  br label %going
going:
  %at.next = phi i64 [ %at, %body ], [ %at, %unequal ], [ %at, %near ], [ %at.here, %wrong ]
  %bad.next = phi i64 [ %bad, %body ], [ %bad, %unequal ], [ %bad, %near ], [ %bad.more, %wrong ]
  %next = add i64 %i, 1
  br label %head
done:
  %any = icmp ne i64 %bad, 0
  %pred = zext i1 %any to i8
  store i8 %pred, ptr %flag
  br i1 %any, label %report, label %end
report:
  %id = ptrtoint ptr %mark to i64
  call void @testbed_note(ptr %events, i64 %id, i64 %at)
  %second = or i64 %id, 1
  call void @testbed_note(ptr %events, i64 %second, i64 %bad)
  br label %end
end:
  ret void
}
"""
)
