"""Cases of opcodes for control flow, randomness, devices and external effects."""

import math

import numpy as np

from ...hlo.opcodes import Op
from .opcode_case import ADD, TWICE, Case

NEGATIONS = """yes { x = f32[] parameter(0)
  ROOT n = f32[] negate(x) }
no { ROOT x = f32[] parameter(0) }
"""
LOOP = """below { s = s32[] parameter(0)
  n = s32[] constant(100)
  ROOT r = pred[] compare(s, n), direction=LT }
double { s = s32[] parameter(0)
  ROOT r = s32[] add(s, s) }
"""
P = "p = f32[2] parameter(0)\n"
PAIR = ([1.0, 2.0],)
DOUBLED = ([2.0, 4.0],)

CONTROL = {
    Op.ADD_DEPENDENCY: Case(P + "t = token[] after-all()\nROOT r = f32[2] add-dependency(p, t)", PAIR, PAIR),
    Op.AFTER_ALL: Case(
        P + "t = token[] after-all()\nu = token[] after-all(t, t)\nROOT r = (f32[2], token[]) tuple(p, u)", PAIR, PAIR
    ),
    Op.CALL: Case(P + "ROOT r = f32[2] call(p), to_apply=twice", DOUBLED, PAIR, TWICE),
    Op.CONDITIONAL: Case(
        "c = pred[] parameter(0)\nx = f32[] parameter(1)\nROOT r = f32[] conditional(c, x, x), "
        "true_computation=yes, false_computation=no",
        (-3.0,),
        (True, 3.0),
        NEGATIONS,
    ),
    Op.CONSTANT: Case("ROOT r = (f32[2], s32[]) constant(({1, -inf}, 7))", ([1.0, -math.inf], 7)),
    Op.CUSTOM_CALL: Case(
        P + 'ROOT r = f32[2] custom-call(p), custom_call_target="half"',
        ([0.5, 1.0],),
        PAIR,
        "",
        {"custom_calls": {"half": lambda instruction, operands, context: operands[0] / 2}},
    ),
    Op.DOMAIN: Case(
        P + 'ROOT r = f32[2] domain(p), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}',
        PAIR,
        PAIR,
    ),
    Op.FUSION: Case(P + "ROOT r = f32[2] fusion(p), kind=kLoop, calls=twice", DOUBLED, PAIR, TWICE),
    Op.GET_TUPLE_ELEMENT: Case(
        "p = (f32[2], s32[]) parameter(0)\nROOT r = s32[] get-tuple-element(p), index=1", (7,), ([1.0, 2.0], 7)
    ),
    Op.OPT_BARRIER: Case(
        "p = (f32[2], s32[]) parameter(0)\nROOT r = (f32[2], s32[]) opt-barrier(p)", ([1.0, 2.0], 7), ([1.0, 2.0], 7)
    ),
    Op.PARAMETER: Case("a = s32[] parameter(1)\nb = s32[] parameter(0)\nROOT r = s32[] subtract(a, b)", (4,), (1, 5)),
    Op.TUPLE: Case(
        P
        + "n = f32[2] negate(p)\nROOT r = (f32[2], (f32[2])) tuple(p, q)".replace(
            "ROOT", "q = (f32[2]) tuple(n)\nROOT"
        ),
        ([1.0, 2.0], [-1.0, -2.0]),
        PAIR,
    ),
    Op.WHILE: Case("p = s32[] parameter(0)\nROOT r = s32[] while(p), condition=below, body=double", (192,), (3,), LOOP),
    Op.ASYNC_START: Case(
        P + "s = ((f32[2]), f32[2]) async-start(p), calls=twice\nROOT r = f32[2] async-done(s)", DOUBLED, PAIR, TWICE
    ),
    Op.ASYNC_UPDATE: Case(
        P + "s = ((f32[2]), f32[2]) async-start(p), calls=twice\nu = ((f32[2]), f32[2]) "
        "async-update(s)\nROOT r = f32[2] async-done(u)",
        DOUBLED,
        PAIR,
        TWICE,
    ),
    Op.ASYNC_DONE: Case(
        P
        + "s = ((f32[2]), f32[2]) add-start(p, p)\nROOT r = f32[2] add-done(s)".replace(
            "((f32[2]), f32[2]) add", "((f32[2], f32[2]), f32[2]) add"
        ),
        DOUBLED,
        PAIR,
    ),
    Op.COPY_START: Case(
        P + "s = (f32[2], f32[2], u32[]) copy-start(p)\nROOT r = f32[2] get-tuple-element(s), index=1", PAIR, PAIR
    ),
    Op.COPY_DONE: Case(P + "s = (f32[2], f32[2], u32[]) copy-start(p)\nROOT r = f32[2] copy-done(s)", PAIR, PAIR),
}

RANDOM = {
    Op.RNG: Case(
        "a = s32[] constant(3)\nb = s32[] constant(4)\nROOT r = s32[2] rng(a, b), distribution=rng_uniform", ([3, 3],)
    ),
    # Random123's known answer for a counter and a key of zeros
    Op.RNG_BIT_GENERATOR: Case(
        "s = u64[2] parameter(0)\nROOT r = (u64[2], u32[2]) rng-bit-generator(s), algorithm=rng_three_fry",
        ([0, 1], [0x6B200159, 0x99BA4EFE]),
        ([0, 0],),
    ),
    Op.RNG_GET_AND_UPDATE_STATE: Case("ROOT r = u64[2] rng-get-and-update-state(), delta=5", ([0x7012395, 0],)),
}

TOKEN = P + "a = token[] after-all()\n"
ALONE = "replica_groups={{0}}"

ONE_DEVICE = {
    Op.ALL_GATHER: Case(P + f"ROOT r = f32[2] all-gather(p), dimensions={{0}}, {ALONE}", PAIR, PAIR),
    Op.ALL_GATHER_START: Case(
        P + f"s = (f32[2], f32[2]) all-gather-start(p), dimensions={{0}}, {ALONE}\n"
        "ROOT r = f32[2] get-tuple-element(s), index=1",
        PAIR,
        PAIR,
    ),
    Op.ALL_GATHER_DONE: Case(
        P + f"s = (f32[2], f32[2]) all-gather-start(p), dimensions={{0}}, {ALONE}\nROOT r = f32[2] all-gather-done(s)",
        PAIR,
        PAIR,
    ),
    Op.ALL_REDUCE: Case(P + "ROOT r = f32[2] all-reduce(p), to_apply=add", PAIR, PAIR, ADD),
    Op.ALL_REDUCE_START: Case(P + "ROOT r = f32[2] all-reduce-start(p), to_apply=add", PAIR, PAIR, ADD),
    Op.ALL_REDUCE_DONE: Case(
        P + "s = f32[2] all-reduce-start(p), to_apply=add\nROOT r = f32[2] all-reduce-done(s)", PAIR, PAIR, ADD
    ),
    Op.ALL_TO_ALL: Case(P + "ROOT r = f32[2] all-to-all(p), dimensions={0}", PAIR, PAIR),
    Op.COLLECTIVE_BROADCAST: Case(P + f"ROOT r = f32[2] collective-broadcast(p), {ALONE}", PAIR, PAIR),
    Op.COLLECTIVE_PERMUTE: Case(
        P + "ROOT r = f32[2] collective-permute(p), source_target_pairs={}", ([0.0, 0.0],), PAIR
    ),
    Op.COLLECTIVE_PERMUTE_START: Case(
        P + "s = (f32[2], f32[2]) collective-permute-start(p), source_target_pairs="
        "{{0,0}}\nROOT r = f32[2] get-tuple-element(s), index=1",
        PAIR,
        PAIR,
    ),
    Op.COLLECTIVE_PERMUTE_DONE: Case(
        P + "s = (f32[2], f32[2]) collective-permute-start(p), source_target_pairs="
        "{{0,0}}\nROOT r = f32[2] collective-permute-done(s)",
        PAIR,
        PAIR,
    ),
    Op.RAGGED_ALL_TO_ALL: Case(
        P
        + """o = f32[3] parameter(1)
  i = s32[1] constant({1})
  n = s32[1] constant({1})
  ROOT r = f32[3] ragged-all-to-all(p, o, i, n, i, n), replica_groups={{0}}""",
        ([7.0, 2.0, 9.0],),
        ([1.0, 2.0], [7.0, 8.0, 9.0]),
    ),
    Op.REDUCE_SCATTER: Case(P + "ROOT r = f32[2] reduce-scatter(p), dimensions={0}, to_apply=add", PAIR, PAIR, ADD),
    Op.PARTITION_ID: Case("ROOT r = u32[] partition-id()", (0,)),
    Op.REPLICA_ID: Case("ROOT r = u32[] replica-id()", (0,)),
    Op.INFEED: Case(
        "a = token[] after-all()\ni = (f32[2], token[]) infeed(a)\nROOT r = f32[2] get-tuple-element(i), index=0",
        PAIR,
        (),
        "",
        {"infeed": [np.array(PAIR[0], np.float32)]},
    ),
    Op.OUTFEED: Case(
        TOKEN + "o = token[] outfeed(p, a), outfeed_shape=f32[2]\nROOT r = (f32[2], token[]) tuple(p, o)", PAIR, PAIR
    ),
    Op.SEND: Case(
        TOKEN + "s = (f32[2], u32[], token[]) send(p, a), channel_id=1\nROOT r = f32[2] get-tuple-element(s), index=0",
        PAIR,
        PAIR,
    ),
}
_SENT = TOKEN + "s = (f32[2], u32[], token[]) send(p, a), channel_id=1\nd = token[] send-done(s), channel_id=1\n"
ONE_DEVICE |= {
    Op.SEND_DONE: Case(_SENT + "ROOT r = (f32[2], token[]) tuple(p, d)", PAIR, PAIR),
    Op.RECV: Case(
        _SENT + "v = (f32[2], u32[], token[]) recv(d), channel_id=1\nROOT r = f32[2] get-tuple-element(v), index=0",
        PAIR,
        PAIR,
    ),
    Op.RECV_DONE: Case(
        _SENT + "v = (f32[2], u32[], token[]) recv(d), channel_id=1\nw = (f32[2], token[]) "
        "recv-done(v), channel_id=1\nROOT r = f32[2] get-tuple-element(w), index=0",
        PAIR,
        PAIR,
    ),
}
