"""Which functions of legacy/ look at their operands' ops, and at slices: the ones that the ADR names."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL, ADR = ROOT / "tools/dag_reads.py", ROOT / "docs/adr/0028-what-legacy-emitters-read.md"


def run(*folders: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, *folders], capture_output=True, text=True)


def test_only_the_functions_of_the_adr_look_past_their_op():
    done = run(ROOT / "tests/corpus")
    assert done.returncode == 0, done.stderr
    operands, slices = (re.findall(r"kernels  \w+\.py: ([\w.]+)", part) for part in done.stdout.split("\n\n")[1:])
    assert set(slices) == {"_declare"}
    known = set(re.findall(r"\w+", ADR.read_text()))
    assert {"instructions", "is_linear"} <= {name.rpartition(".")[2] for name in operands}
    for name in operands:
        assert name.rpartition(".")[2] in known, f"{name} looks at the ops of its operands"


def test_no_module_is_an_error(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 2
    assert "no *.hlo" in done.stderr
