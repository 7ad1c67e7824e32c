"""op_name and line of source of instructions: from their metadata, and from the module's stack frames."""

from ...formats.text.parser import parse_module
from ...hlo.metadata import Sources, metadata_of

MODULE = """HloModule m

FileNames
1 "a \\"b\\".py"
2 "main.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=2 end_column=31}
2 {file_name_id=9 function_name_id=1 line=3}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=1}

ENTRY e {
  x = f32[] parameter(0), metadata={op_name="x[\\'k\\']"}
  a = f32[] negate(x), metadata={op_name="jit(f)/neg" source_file="dir/f.py" source_line=42}
  b = f32[] negate(a), metadata={op_name="jit(f)/neg" stack_frame_id=1}
  c = f32[] negate(b), metadata={stack_frame_id=2}
  d = f32[] negate(c), metadata={stack_frame_id=7}
  f = f32[] negate(d), metadata={source_file="g.py"}
  ROOT g = f32[] negate(f)
}
"""


def test_places_and_names():
    module = parse_module(MODULE)
    sources = Sources(module.attributes)
    found = {i.name: sources.place_of(i) for i in module.entry.instructions}
    assert found == {"x": "", "a": "dir/f.py:42", "b": 'a "b".py:12', "c": "", "d": "", "f": "g.py:?", "g": ""}
    names = {i.name: metadata_of(i).get("op_name") for i in module.entry.instructions}
    assert names["x"] == "x['k']" and names["b"] == "jit(f)/neg" and names["g"] is None


def test_a_module_without_tables():
    sources = Sources({})
    (root,) = parse_module("HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }").entry.instructions
    assert sources.place_of(root) == "" and metadata_of(root) == {}
