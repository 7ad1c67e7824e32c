"""Programs that earlier versions wrote load and give the results that they gave; nobody makes them again."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from ...backends.host.loader import inspect_file, load_executable
from ...codegen.options import Target
from ...hlo.errors import InputError
from ...planning.plan import AllocationKind
from ...thunks.kinds import Thunk
from ...thunks.wire.container import FORMAT
from .golden import make

FOLDER = Path(make.__file__).parent
FILES = sorted(FOLDER.glob("*.tbx"))


def arrays(path, prefix):
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as saved:
        return [saved[f"{prefix}{n}"] for n in range(sum(name.startswith(prefix) for name in saved.files))]


@pytest.mark.skipif(Target.machine().architecture != "x86_64", reason="golden programs are for x86-64")
@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_it_gives_the_results_of_its_day(path):
    results = make.run(load_executable(path), arrays(path, "in"))
    expected = arrays(path, "out")
    assert [(r.dtype, r.shape, r.tobytes()) for r in results] == [(e.dtype, e.shape, e.tobytes()) for e in expected]


@pytest.mark.skipif(Target.machine().architecture == "x86_64", reason="golden programs run here")
@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_another_architecture_refuses_it(path):
    with pytest.raises(InputError, match="its code cannot run here: it is for x86_64"):
        load_executable(path)


@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_it_is_read_everywhere(path):
    file, container = inspect_file(path)
    assert (
        container.reader <= container.format <= FORMAT
        and file.needs.producer == "testbed"
        and "sse2" in file.needs.features
    )
    assert len(file.image.kernels) and len(file.image.thunks.thunks)


def test_together_they_hold_every_kind_of_thunk_and_allocation():
    images = [inspect_file(path)[0].image for path in FILES]
    assert {type(t) for image in images for t in (image.thunks, *image.thunks.walk())} == set(Thunk.__args__)
    assert {a.kind for image in images for a in image.allocations} == set(AllocationKind)
    assert any(a.result >= 0 for image in images for a in image.allocations)
    assert any(image.border for image in images)
    assert any(kernel.split for image in images for kernel in image.kernels)


def test_they_are_as_they_were_made():
    rows = [line.split() for line in make.DIGESTS.read_text().splitlines()]
    assert {name: digest for digest, name in rows} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in FILES
    }
    assert all(re.match(r"\d{4}-\d\d-\d\d\.", path.name) for path in FILES)


def test_the_script_makes_none_again(capsys):
    before = {path: path.read_bytes() for path in FOLDER.iterdir() if path.is_file()}
    assert make.make(FILES[0].name[:10]) == 2
    assert "golden files are never made again" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in FOLDER.iterdir() if path.is_file()} == before
