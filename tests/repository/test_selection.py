"""Which tests depend on a file: imports, names in strings, forms and their record; `./testbed test --changed`."""

import functools
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ...tools import record_forms, rooms_of, run_tests, selection
from ...tools.dependencies import DYNAMIC, Checkout, computed_imports
from ...tools.selection import SelectionError, select

ROOT = Path(__file__).resolve().parents[2]  # the real checkout, also from inside Bazel's sandbox
HERE = Checkout(ROOT)


def folders(tests) -> set[str]:
    return {test.split("/")[1] for test in tests}


# -- this checkout ----------------------------------------------------------------------------------------------------
def test_every_import_by_a_computed_name_has_a_row():
    found = set(computed_imports(HERE))
    assert found <= DYNAMIC.keys(), "say in DYNAMIC of tools/dependencies.py what it imports"
    assert {file for file, row in DYNAMIC.items() if not row} <= found, "a row of DYNAMIC is no longer needed"


def test_shapes_select_all_that_handles_programs():
    left = set(HERE.tests) - select(HERE, ["hlo/shapes.py"]).keys()
    assert len(left) < 40
    rooms = {"conformance", "evaluator", "formats", "legacy", "lhlo", "mlir_emitters", "passes", "planning", "thunks"}
    assert not folders(left) & rooms


def test_a_document_selects_what_looks_at_documents():
    assert set(select(HERE, ["docs/testing.md"])) == set(selection.whole_checkout(HERE))


def test_settings_and_locks_select_all():
    assert list(select(HERE, ["pyproject.toml"])) == list(select(HERE, ["locks/requirements.txt"])) == list(HERE.tests)


@pytest.mark.parametrize("stack", selection.STACKS)
def test_a_file_of_a_stack_selects_what_emits_with_it(stack):
    found = select(HERE, [f"{stack}/__init__.py"])
    assert {test for test in HERE.tests if test.startswith("tests/conformance/")} <= found.keys()
    assert "tests/formats/test_bombs.py" not in found and "tests/hlo/test_opset.py" not in found
    assert "tests/thunks/test_wire.py" not in found and "tests/evaluator/test_evaluator_opcodes.py" not in found


@pytest.mark.parametrize(
    ("file", "test"),
    [
        ("cli/show.py", "cli/test_errors.py"),  # a subcommand, imported when it runs
        ("backends/interpreter/compiler.py", "backends/test_registry.py"),  # a row of a table of names
        ("differential/child_worker.py", "differential/test_child.py"),  # what a process starts with
        ("migration/api.py", "formats/test_builder.py"),  # testbed.compile
        ("formats/text/parser.py", "evaluator/test_processors.py"),  # code for another process
        ("migration/ledger.toml", "migration/test_ledger.py"),
        ("tests/support/inputs.py", "conformance/test_rows.py"),
        ("tests/conftest.py", "hlo/test_opset.py"),
        ("tests/hlo/test_opset.py", "hlo/test_opset.py"),
        ("hlo/gone.py", "hlo/test_opset.py"),
        ("examples/make.py", "repository/test_examples.py"),
    ],
)
def test_ways_on_which_a_test_needs_a_file(file, test):
    assert f"tests/{test}" in select(HERE, [file])


def test_a_test_file_selects_no_other_that_runs_programs():
    assert folders(select(HERE, ["tests/hlo/test_opset.py"]).keys() - {"tests/hlo/test_opset.py"}) <= {
        "cli",  # a rehearsal copies the checkout
        "repository",
        "evaluator",
        "migration",
    }


def test_no_circle_in_ffi_even_by_lazy_imports():
    """import-linter does not see modules that are imported by name."""

    def below(file: str) -> set[str]:
        return {f for f in HERE.named(file) if f.startswith("ffi/") and not f.endswith("/__init__.py")}

    left = {file: below(file) for file in HERE.files if file.startswith("ffi/")}
    while free := {file for file, needed in left.items() if not needed & left.keys()}:
        left = {file: needed for file, needed in left.items() if file not in free}
    assert not left


# -- Bazel ------------------------------------------------------------------------------------------------------------
def test_bazel_has_the_groups_and_what_they_need():
    same = (ROOT / rooms_of.FILE).read_text(encoding="utf-8") == rooms_of.text_of(HERE)
    assert same, f"{rooms_of.FILE} is not up to date: run {rooms_of.COMMAND}"


def test_a_group_has_the_rooms_and_files_that_its_tests_need():
    groups = {file: group for group in rooms_of.groups_of(HERE, ["thunks/test_golden.py"]) for file in group.files}
    assert {f"tests/{file}" for file in groups} == set(HERE.tests)
    opset = groups["hlo/test_opset.py"]
    assert {"hlo", "evaluator"} <= {*opset.rooms} and not {*opset.rooms} & {*selection.STACKS, "backends", "cli"}
    assert {"support/check.py", "__init__.py", "conftest.py"} <= {*groups["conformance/test_rows.py"].support}
    assert "support/check.py" not in opset.support
    assert {*selection.STACKS, "backends", "migration"} <= {*groups["conformance/test_rows.py"].rooms}
    assert groups["thunks/test_golden.py"].files == ("thunks/test_golden.py",)
    assert {"thunks_golden"} <= {*groups["thunks/test_golden.py"].data}
    assert {"golden"} <= {*groups["lhlo/test_program.py"].data} & {*groups["mlir_emitters/test_emission.py"].data}
    assert "tools" in groups["repository/test_run_tests.py"].data and "tools" not in groups["hlo/test_trees.py"].data
    assert max(len(group.files) for group in groups.values()) <= rooms_of.GROUP_FILES


# -- small checkouts --------------------------------------------------------------------------------------------------
def checkout(folder: Path, files: dict[str, str]) -> Checkout:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Checkout(folder)


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("from . import b", {"a/b.py"}),
        ("from .b import thing", {"a/b.py"}),
        ("def f():\n    from ..c.d import thing", {"c/d.py", "c/__init__.py"}),
        ("import testbed.c.d", {"c/d.py", "c/__init__.py"}),
        ("from testbed.c import d", {"c/d.py", "c/__init__.py"}),
        ("if TYPE_CHECKING:\n    from . import b\nelse:\n    from ..c import d", {"c/d.py", "c/__init__.py"}),
        ("'''from testbed.c import d'''", set()),
        ("TABLE = {'x': '.b:Thing'}", {"a/b.py"}),
        ("TABLE = {'x': '..c.d'}", {"c/d.py", "c/__init__.py"}),
        ("TABLE = {'x': 'c.d'}", {"c/d.py", "c/__init__.py"}),
        ("patch('testbed.c.d.NAME', 1)", {"c/d.py", "c/__init__.py"}),
        ("start(f'{__package__}.b')", {"a/b.py"}),
        ("start(f'from testbed.c import d; d.f({x})')", {"c/d.py", "c/__init__.py"}),
        ("CODE = '''\nimport sys\nfrom testbed.c.d import thing\n'''", {"c/d.py", "c/__init__.py"}),
        ("import testbed\ntestbed.thing()", {"c/d.py", "c/__init__.py"}),
        ("import testbed as t\nt.thing()", {"c/d.py", "c/__init__.py"}),
        ("from testbed import thing", {"c/d.py", "c/__init__.py"}),
        ("run([python, '-m', 'testbed', 'diff'])", {"__main__.py"}),
        ("import numpy, c", set()),
    ],
)
def test_what_a_file_needs(tmp_path, text, needed):
    root = "_PUBLIC: dict[str, str] = {'thing': 'c.d'}\nfrom .a import b\n"
    files = {"__init__.py": root, "__main__.py": "", "a/b.py": "", "c/__init__.py": "", "c/d.py": "", "a/x.py": text}
    made = checkout(tmp_path, files)
    assert made.needs("a/x.py") == needed | {"__init__.py"}
    assert not made.needs("__init__.py")


def test_packages_around_a_module_and_the_set_up_of_tests_are_needed(tmp_path):
    files = {"tests/conftest.py": "from ..a import b", "conftest.py": "", "tests/x/test_x.py": "", "a/b.py": ""}
    made = checkout(tmp_path, files)
    assert made.closure("tests/x/test_x.py") == {"tests/x/test_x.py", "tests/conftest.py", "conftest.py", "a/b.py"}


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("golden", "tests/thunks/golden/a.tbx"),
        ("thunks/golden", "tests/thunks/golden/a.tbx"),
        ("a.tbx", "tests/thunks/golden/a.tbx"),
        ("../golden/", "tests/thunks/golden/a.tbx"),
        ("*.tbx", "tests/thunks/golden/a.tbx"),
        ("golden/*/b.hlo", "tests/golden/a/b.hlo"),
    ],
)
def test_a_string_names_a_file_or_a_folder_above_it(text, file):
    assert selection.names([text], file)
    assert not selection.names([text.replace("g", "-").replace(".t", "-"), "", "/", ".", "*", "**"], file)


# -- forms ------------------------------------------------------------------------------------------------------------
STACK = {
    "legacy/core.py": "",
    "legacy/sums.py": "from . import core",
    "legacy/sorts.py": "from . import core, keys",
    "legacy/keys.py": "",
    "legacy/moves.py": "from . import core",
    "legacy/__init__.py": "from . import sums, sorts, moves",
    "tests/BUILD": "WHOLE_CHECKOUT = [\n]\n",
    "tests/test_sorts.py": "from ..legacy import __name__",
    "tests/test_sums.py": "from ..legacy import __name__",
    "tests/test_keys.py": "from ..legacy.keys import order",
    "tests/test_new.py": "from ..legacy import __name__",
    "tests/test_child.py": "from ..legacy import __name__",
    "tests/test_text.py": "",
}
FORMS = {"sort": {"legacy/sorts.py"}, "sum": {"legacy/sums.py"}, "move": {"legacy/moves.py"}}
RECORD = {
    "tests/test_sorts.py": ["legacy:sort", "legacy:sum"],
    "tests/test_sums.py": ["legacy:sum"],
    "tests/test_keys.py": [],
    "tests/test_child.py": ["*"],
    "tests/test_text.py": [],
}


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("keys", {"keys", "sorts", "new", "child"}),
        ("sorts", {"sorts", "new", "child"}),
        ("sums", {"sorts", "sums", "new", "child"}),
        ("moves", {"new", "child"}),
        ("core", {"keys", "sorts", "sums", "new", "child"}),  # all forms have it
        ("__init__", {"keys", "sorts", "sums", "new", "child"}),
    ],
)
def test_a_record_selects_by_forms(tmp_path, monkeypatch, file, tests):
    made = checkout(tmp_path, STACK)
    monkeypatch.setattr(selection, "homes_of", lambda *_: FORMS)
    assert set(select(made, [f"legacy/{file}.py"], RECORD)) == {f"tests/test_{name}.py" for name in tests}
    without = {"keys", "sorts", "sums", "new", "child"}
    assert set(select(made, [f"legacy/{file}.py"])) == {f"tests/test_{name}.py" for name in without}


def test_the_home_of_a_form_is_where_its_functions_stand():
    def fits(task):
        return task

    @functools.wraps(selection.select)
    def emit(task):
        return task

    form = SimpleNamespace(name="x", fits=functools.partial(fits, 1), emit=emit)
    assert selection.homes([form], HERE) == {"x": {"tests/repository/test_selection.py", "tools/selection.py"}}


@pytest.mark.parametrize("stack", selection.STACKS)
def test_each_form_of_a_stack_has_a_home_in_it(stack):
    """Where the stack has a table of forms."""
    homes = selection.homes_of(HERE, stack)
    assert bool(homes) == ((ROOT / stack / "forms.py").is_file())
    for form, files in homes.items():
        assert files and all(file.startswith(stack + "/") for file in files), form


def test_a_table_that_does_not_load_selects_by_imports(tmp_path, monkeypatch, capsys):
    made = checkout(tmp_path, {**STACK, "legacy/forms.py": ""})

    def broken(name):
        raise SyntaxError("half an edit")

    monkeypatch.setattr(selection, "import_module", broken)
    assert selection.homes_of(made, "legacy") == {}
    assert "legacy/forms.py does not load (half an edit): selecting by imports only" in capsys.readouterr().err


# -- the record -------------------------------------------------------------------------------------------------------
def test_a_record_is_read_as_it_was_written(tmp_path):
    file = tmp_path / "r.json"
    rows = {"tests/test_b.py": ["legacy:x", "*"], "tests/test_a.py": []}
    record_forms.write(file, rows)
    assert selection.read_record(file) == {"tests/test_a.py": [], "tests/test_b.py": ["*", "legacy:x"]}
    assert selection.read_record(tmp_path / "none.json") is None
    file.write_text('{"forms": []}')
    with pytest.raises(SelectionError, match=r"r\.json is no record of forms .*: remove it, or write it anew"):
        selection.read_record(file)


def test_a_session_replaces_the_rows_of_its_files(tmp_path):
    file = tmp_path / "r.json"
    record_forms.write(file, {"a": ["1"], "b": ["1", "2"], "gone": ["1"]})
    record_forms.write(tmp_path / "r.json.7.part", {"b": ["3"]})
    record_forms.write(tmp_path / "r.json.8.part", {"b": ["4"], "c": []})
    assert record_forms.join(file, ["a", "b", "c"]) == 2
    assert selection.read_record(file) == {"a": ["1"], "b": ["3", "4"], "c": []}
    assert list(tmp_path.iterdir()) == [file]


def test_the_stack_of_a_form_is_the_first_that_called(tmp_path):
    recorder = record_forms.FormsRecorder(ROOT, tmp_path / "r.json")
    recorder._begin(ROOT / "tests/test_x.py")
    chosen = SimpleNamespace(names=("rows", "nest"))
    for name in ("testbed.legacy.emission", "testbed.mlir_emitters", "testbed.backends.c"):
        exec("note([chosen], sys._getframe())", {"__name__": name, "note": recorder.note, "chosen": chosen, "sys": sys})
    wanted = {"legacy:rows", "legacy:nest", "mlir_emitters:rows", "mlir_emitters:nest"}
    assert recorder.reached == {"tests/test_x.py": wanted}


def test_another_python_may_reach_every_form(tmp_path):
    recorder = record_forms.FormsRecorder(ROOT, tmp_path / "r.json")
    recorder._begin(ROOT / "tests/test_x.py")
    recorder._watch("subprocess.Popen", ("/usr/bin/cc", ["cc", "x.c"], None, None))
    assert recorder.reached == {"tests/test_x.py": set()}
    recorder._watch("subprocess.Popen", (sys.executable, [sys.executable, "-c", ""], None, None))
    assert recorder.reached == {"tests/test_x.py": {"*"}}


def test_a_run_writes_a_record(tmp_path, capfd):
    file = tmp_path / "r.json"
    assert run_tests.main(["--record-forms", str(file), str(run_tests.ROOT / "tests/repository/test_names.py")]) == 0
    assert f"1 test files recorded in {file}" in capfd.readouterr().out
    assert list(selection.read_record(file)) == ["tests/repository/test_names.py"]


# -- the command ------------------------------------------------------------------------------------------------------
def test_what_changed_is_asked_of_git(tmp_path):
    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=trunk"]
        subprocess.run(["git", "-C", tmp_path, *who, *words], check=True, capture_output=True)

    git("init")
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    git("add", ".")
    git("commit", "-m", "one")
    git("checkout", "-b", "mine")
    (tmp_path / "a").write_text("changed")
    git("commit", "-am", "two")
    git("checkout", "trunk")
    (tmp_path / "c").write_text("theirs")
    git("commit", "-am", "three")
    git("checkout", "mine")
    (tmp_path / "b").unlink()
    (tmp_path / "new").write_text("")
    assert selection.changed_since(tmp_path, "HEAD") == ["b", "new"]
    assert selection.changed_since(tmp_path, "trunk") == ["a", "b", "new"]  # not what others did meanwhile
    with pytest.raises(SelectionError, match=r"--changed: .*; give a revision of git, or name the files with --for"):
        selection.changed_since(tmp_path, "nowhere")


def test_files_outside_and_none_are_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(SelectionError, match="not in this checkout"):
        selection.relative(ROOT, [str(tmp_path)])
    with pytest.raises(SelectionError, match=r"--for hlo/none\.py: no such file; --changed finds those"):
        selection.relative(ROOT, ["hlo/none.py"])
    assert "hlo/verify/verifier.py" in selection.relative(ROOT, [str(ROOT / "hlo")])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--for", "BUILD", "--changed"], "give one of: paths, --for, --changed"),
        (["--list"], "--list goes with --for or --changed"),
        (["-k", "x", "--record-forms"], "--record-forms takes whole files"),
        (["--for", "no/such.py"], "--for no/such.py: no such file"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(arguments, text, capsys):
    assert run_tests.main(arguments) == 2
    assert text in capsys.readouterr().err


def test_the_list_says_why(capsys, monkeypatch):
    monkeypatch.setattr(run_tests, "ROOT", ROOT)
    assert run_tests.main(["--for", str(ROOT / "tools/python/pytest_names.py"), "--list"]) == 0
    out = capsys.readouterr().out
    assert "test files depend on tools/python/pytest_names.py" in out
    assert "tests/repository/test_names.py: needs tools/python/pytest_names.py" in out
