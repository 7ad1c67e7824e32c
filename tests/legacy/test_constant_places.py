"""A constant that a branch reads is no value of that branch: others that read it stand outside."""

from ..support.check import check

TEXT = """HloModule m
running { x = f32[1,3,1] parameter(0)
  carry = f32[1,3,1] parameter(1)
  s = f32[1,3,1] subtract(carry, x)
  ROOT t = (f32[1,3,1], f32[1,3,1]) tuple(carry, s) }
ENTRY e { x = f32[2,1,3,1] parameter(0)
  i = f32[1,3,1] parameter(1)
  seed = u64[3] constant({0, 7, 0})
  random = (u64[3], u32[2,1,3,1]) rng-bit-generator(seed), algorithm=rng_philox
  state = u64[3] get-tuple-element(random), index=0
  bits = u32[2,1,3,1] get-tuple-element(random), index=1
  zero = f32[] constant(0)
  zeros = f32[2,1,3,1] broadcast(zero), dimensions={}
  y = f32[2,1,3,1] multiply(zeros, x)
  p = u64[3] power(state, state)
  c = f32[2,1,3,1] copy(y)
  r = (f32[2,1,3,1], f32[1,3,1]) scan(c, i), dimensions={0}, num_carries=1, is_reverse=false, to_apply=running
  before = f32[2,1,3,1] get-tuple-element(r), index=0
  last = f32[1,3,1] get-tuple-element(r), index=1
  ROOT t = (f32[1,3,1], f32[2,1,3,1], u64[3], u32[2,1,3,1]) tuple(last, before, p, bits) }
"""


def test_a_constant_of_a_branch_is_read_behind_it():
    """Instructions stood behind the end of a branch's block: LLVM refused them."""
    check(TEXT)
