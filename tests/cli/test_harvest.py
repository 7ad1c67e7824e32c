"""`testbed harvest`: kernels of folders, files and suites; what cannot be read is named and the rest goes on."""

import numpy as np

from ...cli.main import main
from ...migration.weights import read_weights
from ..cases.modules import ADD


def test_folders_files_and_suites(tmp_path, capsys):
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite/add.hlo").write_text(ADD)
    np.savez(tmp_path / "suite/add.npz", in0=np.float32([1, 2]), out0=np.float32([2, 4]))
    (tmp_path / "suite/manifest.jsonl").write_text('{"id": "first", "hlo": "add.hlo", "golden": "add.npz"}\n')
    (tmp_path / "mine/deep").mkdir(parents=True)
    (tmp_path / "mine/deep/module.hlo").write_text(ADD.replace("add(p", "subtract(p"))
    (tmp_path / "mine/deep/module.mlir").write_text("another form of it")
    out, weights = tmp_path / "out", tmp_path / "w.toml"
    arguments = ["harvest", str(tmp_path / "suite"), str(tmp_path / "mine"), "-o", str(out), "--weights", str(weights)]
    (tmp_path / "mine/same.hlo").write_text(ADD.replace("HloModule m", "HloModule other"))
    assert main(arguments) == 0
    assert "2 kernels in 3 programs; 0 left out" in capsys.readouterr().out
    index = (out / "index.txt").read_text().splitlines()
    assert len(index) == 2 and sorted(p.name for p in out.iterdir()) == ["00000.hlo", "00001.hlo", "index.txt"]
    assert sorted(len(line.split("\t")[3].split()) for line in index) == [1, 2]
    assert read_weights(weights).shares == {"elemental.float.host": 1.0}
    assert main(["run", str(out / "00000.hlo")]) == 0


def test_what_fails_is_named_and_the_rest_goes_on(tmp_path, capsys):
    (tmp_path / "a.hlo").write_text(ADD)
    (tmp_path / "b.hlo").write_text(ADD.replace("add(p", "ad(p"))
    assert main(["harvest", str(tmp_path)]) == 1
    done = capsys.readouterr()
    assert "1 kernels in 1 programs; 1 left out" in done.out and "b.hlo" in done.err


def test_nothing_to_harvest_is_one_line(tmp_path, capsys):
    for place, what in ((tmp_path / "gone", "no such file or folder"), (tmp_path, "no kernel in")):
        assert main(["harvest", str(place)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("testbed: error: ") and what in line
