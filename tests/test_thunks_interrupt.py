"""Ctrl-C ends a loop that would never end, whether the native runner or Python turns it, and harms nothing else."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """HloModule forever
condition {
  t = (pred[], s32[]) parameter(0)
  ROOT go = pred[] get-tuple-element(t), index=0
}
yes { y = s32[] parameter(0)
  one = s32[] constant(1)
  ROOT r = s32[] add(y, one) }
no { n = s32[] parameter(0)
  ROOT r = s32[] negate(n) }
body {
  t = (pred[], s32[]) parameter(0)
  go = pred[] get-tuple-element(t), index=0
  i = s32[] get-tuple-element(t), index=1
  NEXT
  ROOT r = (pred[], s32[]) tuple(go, j)
}
ENTRY e {
  go = pred[] parameter(0)
  i = s32[] parameter(1)
  t = (pred[], s32[]) tuple(go, i)
  ROOT w = (pred[], s32[]) while(t), condition=condition, body=body
}
"""

BODIES = {
    "native": "one = s32[] constant(1)\n  j = s32[] add(i, one)",
    "native, empty": "j = s32[] copy(i)",
    "interpreted": "j = s32[] conditional(go, i, i), true_computation=yes, false_computation=no",
}

SCRIPT = """
import pathlib, sys
root = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(root / "tools/python"))
from pytest_names import import_root
import_root(root)
import numpy as np
import testbed
executable = testbed.compile(sys.argv[2], options=testbed.CompileOptions(cache=None))
print("runs", flush=True)
try:
    executable.execute([np.bool_(True), np.int32(0)])
except KeyboardInterrupt:
    again = executable.execute([np.bool_(False), np.int32(5)])
    print("interrupted", [x.item() for x in again], len(executable._contexts), flush=True)
"""


@pytest.mark.parametrize("kind", BODIES)
def test_an_endless_loop_is_interrupted_and_the_program_runs_again(kind):
    text = PROGRAM.replace("NEXT", BODIES[kind])
    command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent.parent), text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == "runs\n"
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(timeout=0.7)  # it does not end by itself
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=20)
        finally:
            child.kill()
    assert (out, err, child.returncode) == ("interrupted [False, 5] 1\n", "", 0)
