"""`load` reads a module from whatever holds one, and says what it tried where it cannot."""

import importlib.util
import io
from pathlib import Path

import numpy as np
import pytest

import testbed

from ...formats.proto.proto import module_to_proto, module_to_text_proto
from ...hlo.equality import difference

TEXT = "HloModule m\n\nENTRY e {\n  p = f32[4]{0} parameter(0)\n  ROOT t = f32[4]{0} negate(p)\n}\n"
MODULE = testbed.parse(TEXT)
EXAMPLE = Path(__file__).parents[2] / "examples/heat_stencil"
STABLEHLO = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}"
F32 = testbed.DType.F32
needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs ./testbed setup --xla")


def same(module):
    return difference(module, MODULE) is None or module.parameter_shapes == MODULE.parameter_shapes


@pytest.mark.parametrize(
    "source",
    [
        *(TEXT, TEXT.replace("\n", " "), TEXT.encode(), bytearray(TEXT.encode()), memoryview(TEXT.encode()), MODULE),
        *(io.StringIO(TEXT), io.BytesIO(TEXT.encode()), module_to_proto(MODULE), module_to_text_proto(MODULE)),
    ],
    ids=lambda source: type(source).__name__,
)
def test_text_bytes_files_and_modules(source):
    assert same(testbed.load(source))


def test_paths_to_files_and_folders(tmp_path, monkeypatch):
    (tmp_path / "m.hlo").write_text(TEXT)
    (tmp_path / "m.pb").write_bytes(module_to_proto(MODULE))
    (tmp_path / "odd").write_text(TEXT)
    for name in ("m.hlo", "m.pb", "odd"):
        assert same(testbed.load(tmp_path / name)) and same(testbed.load(str(tmp_path / name)))
    monkeypatch.chdir(tmp_path)
    assert same(testbed.load("odd"))
    module = testbed.load(EXAMPLE)
    assert difference(module, testbed.load(str(EXAMPLE))) is None and module.name.startswith("jit")


def test_a_protobuf_message():
    from ...formats.proto.schema import message

    made = message("HloModuleProto")()
    made.ParseFromString(module_to_proto(MODULE))
    assert same(testbed.load(made))


def test_a_module_is_verified():
    wrong = TEXT.replace("negate(p)", "not(p)")
    with pytest.raises(testbed.VerificationError, match=r"<string>:5:\d+: .*UNARY2"):
        testbed.load(wrong)


WRONG = {
    "no file": ("nosuch.hlo", "'nosuch.hlo': no such file, and no text of a module.*give a path"),
    "no file at a path": (Path("nosuch.hlo"), r"nosuch\.hlo: no such file"),
    "a folder without a module": (Path(__file__).parent, "module.hlo: no such file"),
    "nothing": ("", "<string>:1:1: the text is empty .a module starts with"),
    "no bytes": (b"", "<bytes>:1:1: the text is empty"),
    "unknown text": ("a {\n", "taken for HLO text: it looks neither like StableHLO nor like a proto; format='…'"),
    "unknown bytes": (b"\xff\xfe\xfd", "taken for proto: it is neither UTF-8 text nor MLIR bytecode"),
    "an int": (3, "no module can be read from int .give a path, HLO or StableHLO text"),
    "an array": (np.zeros(3), "no module can be read from numpy.ndarray"),
    "none": (None, "no module can be read from NoneType"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_says_what_was_tried(name):
    source, message = WRONG[name]
    with pytest.raises(testbed.TestbedError, match=message):
        testbed.load(source)


def test_the_error_of_hlo_text_has_its_place_and_no_guess():
    with pytest.raises(testbed.ParseError) as caught:
        testbed.load("HloModule m\nENTRY e { p = }", file="my.hlo")
    assert str(caught.value).startswith("my.hlo:2:") and "taken for" not in str(caught.value)


def test_the_format_can_be_named():
    assert same(testbed.load(TEXT.encode(), format="hlo"))
    with pytest.raises(testbed.InputError, match=r"damaged at byte|no computation"):
        testbed.load(TEXT.encode(), format="proto")
    with pytest.raises(testbed.InputError, match=r"unknown format 'hlp'.*choose from hlo, stablehlo, proto, pbtxt"):
        testbed.load(TEXT, format="hlp")


@needs_jax
@pytest.mark.xla
class TestJax:
    """JAX's stages, XLA's and MLIR's modules. Their trees are kept."""

    ARGUMENTS = ({"w": np.float32(2), "b": np.ones(3, np.float32)}, np.ones(3, np.float32), 1.0)

    @staticmethod
    def function(params, batch, unused, *, key=None):
        return {"y": params["w"] * batch + params["b"], "z": (batch, None), "k": key}

    @property
    def lowered(self):
        import jax

        return jax.jit(self.function).lower(*self.ARGUMENTS, key=np.int32(5))

    def stages(self):
        import jax

        jitted = jax.jit(self.function)
        yield self.lowered
        yield self.lowered.compile()
        yield jitted.trace(*self.ARGUMENTS, key=np.int32(5))
        yield jax.export.export(jitted)(*self.ARGUMENTS, key=np.int32(5))

    def test_every_stage_keeps_its_trees(self):
        import jax

        want = jax.jit(self.function)(*self.ARGUMENTS, key=np.int32(5))
        for stage in self.stages():
            executable = testbed.compile(stage)
            result = executable(*self.ARGUMENTS, key=5)
            assert jax.tree.structure(result) == jax.tree.structure(want)
            jax.tree.map(np.testing.assert_array_equal, result, want)

    def test_arguments_that_jax_drops_are_no_parameters(self):
        module = testbed.load(self.lowered)
        assert len(module.entry.parameters) == 4 and module.trees.kept == (0, 1, 2, 4)

    def test_texts_and_modules_of_xla_and_mlir(self):
        lowered = self.lowered
        mlir, xla = lowered.compiler_ir("stablehlo"), lowered.compiler_ir("hlo")
        wanted = [s.without_layout() for s in testbed.load(lowered).parameter_shapes]
        for source in (mlir, mlir.operation, xla, xla.as_hlo_module(), lowered.as_text(), lowered.as_text("hlo")):
            assert [s.without_layout() for s in testbed.load(source).parameter_shapes] == wanted

    def test_trees_survive_a_copy(self):
        import copy
        import pickle

        module = testbed.load(self.lowered)
        for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
            assert twin.trees.arguments == module.trees.arguments and twin.trees.kept == module.trees.kept

    def test_a_jitted_function_has_no_shapes(self):
        import jax

        with pytest.raises(testbed.InputError, match=r"the jitted function 'function' has no shapes yet.*lower"):
            testbed.load(jax.jit(self.function))

    def test_stablehlo_text_and_bytes(self):
        for source in (STABLEHLO, STABLEHLO.encode()):
            assert [s.without_layout() for s in testbed.load(source).parameter_shapes] == [testbed.Shape(F32, (4,))]
        with pytest.raises(testbed.ParseError, match=r"^s.mlir:2:"):
            testbed.load(STABLEHLO.replace("return", "retrun"), file="s.mlir")
