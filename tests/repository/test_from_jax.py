"""docs/from-jax.md: its commands run, in their order, and the profile has the source lines that the page shows."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ...tools.python.link_package import link_package
from ..support.documents import BLOCKS, TESTBED

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.xla


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """The page's commands after they have run, and what each printed. /tmp becomes a folder of the test."""
    pytest.importorskip("jax")
    folder = tmp_path_factory.mktemp("page")
    (folder / "packages").mkdir()
    link_package(folder / "packages", ROOT)
    launcher = folder / "launcher.py"
    launcher.write_text(TESTBED.format(python=sys.executable, packages=str(folder / "packages")).partition("\n")[2])
    shell = [b for b in BLOCKS if b.document == "docs/from-jax.md" and b.language == "sh"]
    printed = {}
    for line in "".join(b.text for b in shell).splitlines():
        command = line.replace("/tmp/", f"{folder}/").replace(".venv/bin/python3", sys.executable)
        command = command.replace("./testbed", f"{sys.executable} {launcher}")
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(folder / "packages")}
        done = subprocess.run(command, shell=True, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, line + done.stdout + done.stderr
        printed[line] = done.stdout
    return folder, printed


def test_stacks_and_jaxs_results_agree(commands):
    (found,) = [text for line, text in commands[1].items() if " diff " in line]
    assert "evaluator, golden, legacy, mlir agree" in found


def test_a_row_for_each_source_line_of_the_page(commands):
    shown = set(re.findall(r"profile_from_jax.py:(\d+)", (ROOT / "docs/from-jax.md").read_text(encoding="utf-8")))
    (found,) = [text for line, text in commands[1].items() if "--by source" in line]
    assert shown and shown == set(re.findall(r"profile_from_jax.py:(\d+)", found))
    source = (ROOT / "examples/profile_from_jax.py").read_text(encoding="utf-8").splitlines()
    assert all("w1" in source[int(n) - 1] or "w2" in source[int(n) - 1] or "rate" in source[int(n) - 1] for n in shown)


def test_the_graph_has_the_scopes_and_the_times(commands):
    text = (commands[0] / "step" / "graph.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    scopes = {name for u in data["units"] for name in u["path"]}
    assert {"jvp(hidden)", "transpose(jvp(hidden))", "update"} <= scopes and any(u["us"] for u in data["units"])
