"""One of XLA's kernels beside ours: `stages --kernel`, and the board's page of it."""

import re

import pytest

from ...cli.board.findings_view import kind_of
from ...cli.board.kernels_view import kernels_in
from ...cli.main import main
from ...hlo.errors import InputError
from ..support.xla_dump import PREFIX, write_dump


@pytest.fixture
def dump(tmp_path):
    folder = write_dump(tmp_path / "dump")
    for kind in ("pre-optimization", "post-optimization", "post-lowering"):
        (folder / f"{PREFIX}.add_fusion_kernel_module-{kind}.mlir").write_text(f"// {kind} of XLA\n")
    return folder


def stages(dump, tmp_path, *more):
    return main(["stages", str(dump), "--dir", str(tmp_path / "k"), *more])


def test_stages_of_a_kernel_stand_side_by_side_down_to_assembly(dump, tmp_path, capsys):
    assert stages(dump, tmp_path, "--kernel", "add_fusion") == 0
    names = [line.rsplit("/", 1)[-1] for line in capsys.readouterr().out.split()]
    kinds = {stack: [n.split(".", 2)[2] for n in names if n.startswith(f"{stack}.")] for stack in ("xla-new", "mlir")}
    ends = ("before.mlir", "after.mlir", "lowered.mlir", "ll", "s")
    assert kinds["xla-new"][:5] == [f"add_fusion.{end}" for end in ends]
    assert "s" in kinds["mlir"] and "lhlo.mlir" in kinds["mlir"] and any(n.startswith("legacy.") for n in names)
    text = (tmp_path / "k" / "xla-new.5.add_fusion.s").read_text()
    assert text.startswith("add_fusion:\n") and "ret" in text
    assert "update" not in "".join(p.read_text() for p in (tmp_path / "k").glob("1.optimized.hlo"))


def test_all_kernels_of_a_program_have_assembly(dump, tmp_path, capsys):
    assert stages(dump, tmp_path, "--emitters", "mlir+xla-new") == 0
    out = capsys.readouterr().out
    assert "add_fusion.s" in out and "update_fusion.s" in out and "mlir.6.s" in out


def test_an_object_that_cannot_be_read_is_said_in_its_place(dump, tmp_path):
    """The IR still runs; the listing of the object says why there is none."""
    path = dump / f"{PREFIX}.obj-file.add_fusion_kernel_module.o"
    data = bytearray(path.read_bytes())
    data[0x12:0x14] = b"\x99\x99"
    path.write_bytes(bytes(data))
    assert stages(dump, tmp_path, "--kernel", "add_fusion", "--emitters", "xla-new-ir") == 0
    (listing,) = (tmp_path / "k").glob("*.add_fusion.s")
    assert re.match(r"no assembly: .*\.o: an object of a machine with the number 39321", listing.read_text())


def test_an_unknown_kernel_is_one_line(dump, tmp_path, capsys):
    assert stages(dump, tmp_path, "--kernel", "ad_fusion") == 2
    assert "XLA has no kernel 'ad_fusion' in jit_tiny (choose from add_fusion" in capsys.readouterr().err
    assert not (tmp_path / "k").exists()


def test_the_board_shows_a_kernel(dump, tmp_path, capsys):
    assert stages(dump, tmp_path, "--kernel", "add_fusion") == 0
    assert main(["report", "-o", str(tmp_path / "board"), "--kernels", str(tmp_path / "k")]) == 0
    page = (tmp_path / "board" / "kernel-k.html").read_text()
    heads = re.findall(r'<h2 id="row-\d+">([^<]+)</h2>', page)
    assert heads == [
        *(
            "Forms",
            "LHLO",
            "XLA&#39;s MLIR before its passes",
            "MLIR",
            "XLA&#39;s MLIR after its passes",
            "LLVM dialect",
        ),
        *("XLA&#39;s MLIR, LLVM dialect", "LLVM IR", "LLVM IR, optimised", "Assembly"),
    ]
    assert "pre-optimization of XLA" in page and '<a href="kernel-k.html">k</a>' in (
        (tmp_path / "board" / "kernels.html").read_text()
    )


def test_a_folder_without_stages_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no stages of a kernel: 1\.optimized\.hlo is missing"):
        kernels_in([tmp_path])
    (tmp_path / "1.optimized.hlo").write_text("HloModule m\n")
    with pytest.raises(InputError, match="no stages of a kernel: no stack has any"):
        kernels_in([tmp_path])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mlir.5.optimized.ll", "optimized.ll"),
        ("xla-new.5.add_fusion.1.optimized.ll", "optimized.ll"),
        ("xla-new.1.a.before.mlir", "before.mlir"),
        ("shadow.6.b.s", "s"),
        ("legacy.1.ll", "ll"),
        ("error.txt", "error.txt"),
        ("mlir.9.new.kind", "new.kind"),
    ],
)
def test_kinds_of_stages(name, kind):
    assert kind_of(name) == kind
