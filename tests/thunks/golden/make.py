"""Makes golden programs of today: python3 -m testbed.tests.thunks.golden.make [NAME…] (docs/files.md, Versions).

It never overwrites one: what a version wrote, all later versions must run. Run it when the form of files changes.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from testbed.backends.base import CompileOptions
from testbed.backends.host.executable import HostExecutable
from testbed.codegen.load import symbols_of
from testbed.codegen.options import EmitOptions, Target
from testbed.differential.fake_inputs import fake_inputs
from testbed.formats.arrays import save_io
from testbed.migration.api import compile, parse

FOLDER = Path(__file__).parent
DIGESTS = FOLDER / "digests.txt"

LOOP = """HloModule loop
next {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[8] reverse(x), dimensions={0}
  k = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})
  z = f32[8] add(y, k)
  ROOT t = (s32[], f32[8]) tuple(j, z)
}
more {
  s = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(9)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  i = s32[] parameter(0)
  x = f32[8] parameter(1)
  s = (s32[], f32[8]) tuple(i, x)
  ROOT w = (s32[], f32[8]) while(s), condition=more, body=next
}
"""
BRANCHES = """HloModule branches
plus {
  p = f32[4,2] parameter(0)
  ROOT r = f32[4,2] add(p, p)
}
times {
  p = f32[4,2] parameter(0)
  ROOT r = f32[4,2] multiply(p, p)
}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=LT
}
sorted {
  p = f32[4,2] parameter(0)
  ROOT r = f32[4,2] sort(p), dimensions={0}, to_apply=less
}
ENTRY e {
  i = s32[] parameter(0)
  c = pred[] parameter(1)
  x = f32[4,2] parameter(2)
  y = f32[4,2] conditional(i, x, x, x), branch_computations={plus, times, sorted}
  ROOT z = f32[4,2] conditional(c, y, y), true_computation=times, false_computation=plus
}
"""
ALIASED = """HloModule aliased, input_output_alias={ {0}: (0, {}, may-alias) }
ENTRY e {
  x = f32[16] parameter(0)
  m = s32[3,5]{0,1} parameter(1)
  y = f32[16] negate(x)
  k = s32[5] constant({7, 1, 4, 2, 9})
  b = s32[3,5] broadcast(k), dimensions={1}
  n = s32[3,5]{0,1} multiply(m, b)
  ROOT t = (f32[16], s32[3,5]{0,1}, s32[5]) tuple(y, n, k)
}
"""
DYNAMIC = """HloModule dynamic
ENTRY e {
  x = f32[<=8,3] parameter(0)
  ROOT y = f32[<=8,3] negate(x)
}
"""
PRODUCT = """HloModule product
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  params_w = f32[24,16] parameter(0), metadata={op_name="params[\\'w\\']"}
  x = f32[8,24] parameter(1)
  d = f32[8,16] dot(x, params_w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[] constant(0)
  ROOT r = f32[8] reduce(d, z), dimensions={1}, to_apply=sum
}
"""
SPLIT = """HloModule split
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[128] parameter(0)
  b = f32[128,8192] broadcast(x), dimensions={0}
  i = f32[128,8192] iota(), iota_dimension=1
  m = f32[128,8192] multiply(b, i)
  z = f32[] constant(0)
  ROOT r = f32[128] reduce(m, z), dimensions={1}, to_apply=sum
}
"""
DEVICES = """HloModule devices
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  x = f32[2,3] parameter(0)
  k = token[] after-all()
  f = (f32[2,3], token[]) infeed(k)
  y = f32[2,3] get-tuple-element(f), index=0
  a = f32[2,3] all-reduce(y), replica_groups={{1,0}}, channel_id=3, use_global_device_ids=true, to_apply=sum
  t = f32[2,3] all-to-all(x), dimensions={0}
  p = f32[2,3] collective-permute(x), source_target_pairs={{0,1}}
  b = f32[2,3] collective-broadcast(x), replica_groups={{1,0}}
  r = u32[] replica-id()
  o = token[] outfeed(t, k), outfeed_shape=f32[2,3]
  ROOT all = (f32[2,3], f32[2,3], f32[2,3], f32[2,3], u32[]) tuple(a, t, p, b, r)
}
"""
PROGRAMS = {
    "loop": (LOOP, "mlir", ""),
    "branches": (BRANCHES, "legacy", ""),
    "aliased": (ALIASED, "mlir", ""),
    "dynamic": (DYNAMIC, "legacy", ""),
    "product": (PRODUCT, "mlir", ""),
    "profile": (LOOP, "legacy", "profile"),
    "split": (SPLIT, "legacy", ""),
    "devices": (DEVICES, "mlir", ""),
    "nan": (LOOP, "legacy", "nan"),
    "checksum": (BRANCHES, "legacy", "checksum"),
    "redzone": (LOOP, "mlir", "redzone"),
}
"""Name → HLO, stack, what it notes (a profile, or checks): together every kind of thunk and of allocation."""


def make(day: str, names: Sequence[str] = tuple(PROGRAMS)) -> int:
    taken = sorted(path.name for name in names for path in FOLDER.glob(f"{day}.{name}.*"))
    if taken:
        print(f"{FOLDER / taken[0]} exists, and golden files are never made again", file=sys.stderr)
        return 2
    made = {name: _made(*PROGRAMS[name]) for name in names}
    for name, (data, inputs, results) in made.items():
        file = FOLDER / f"{day}.{name}.tbx"
        file.write_bytes(data)
        save_io(file.with_suffix(".npz"), inputs, results)
        with open(DIGESTS, "a") as digests:
            digests.write(f"{hashlib.sha256(data).hexdigest()}  {file.name}\n")
    return 0


def run(executable: HostExecutable, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results. On two devices each has a parameter and a value of its infeed, and the outfeed is a result."""
    if executable.outside is None:
        return executable.execute([x.copy() for x in inputs])
    x, y, *fed = inputs
    for device, value in enumerate(fed):
        executable.infeed(value, device=device)
    results = executable.execute_replicated([[x], [y]])
    return [leaf for device in range(2) for leaf in (*results[device], *executable.outfeed(device))]


def _made(text: str, stack: str, notes: str) -> tuple[bytes, list[np.ndarray], list[np.ndarray]]:
    emit, replicas = EmitOptions(Target.level("x86-64-v2"), ranges=text == SPLIT), 2 if text == DEVICES else 1
    watched = {"profile": True} if notes == "profile" else {"debug": notes}
    executable = compile(text, stack, CompileOptions(emit, cache=None, replicas=replicas, **watched))
    inputs = [x[:5] if text == DYNAMIC else x for x in fake_inputs(parse(text), 1)]
    if text == DEVICES:
        inputs = [x + n for n in range(4) for x in inputs]
    results = run(executable, inputs)
    if needed := symbols_of(executable.code.objects).undefined:
        raise ValueError(f"a golden program needs {needed}, which other machines may lack")
    return executable.serialize(), inputs, results


if __name__ == "__main__":
    sys.exit(make(datetime.now(UTC).strftime("%Y-%m-%d"), sys.argv[1:] or tuple(PROGRAMS)))
