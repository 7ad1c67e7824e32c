"""The checkout as a whole: layers, lock, BUILD files, documents, and texts that no tracked file may contain."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ...migration.ledger_file import RECORDS
from ...tools.python.packages import found as found_packages
from ...tools.rooms_of import read_groups

# The real checkout, also from inside Bazel's sandbox.
ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LAYERS = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
FLOORS = [[room.strip().removeprefix("testbed.") for room in floor.split("|")] for floor in LAYERS]
ROOMS = [room for floor in FLOORS for room in floor]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def tracked() -> list[Path]:
    """The files of the repository, or all files if the checkout is no git repository (an archive)."""
    git = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, text=True)
    if git.returncode == 0 and git.stdout:
        names = [ROOT / name for name in git.stdout.split("\0") if name]
    else:
        names = [p for p in ROOT.rglob("*") if not any(part.startswith(".") for part in p.relative_to(ROOT).parts)]
    return [path for path in names if path.is_file() and not path.is_symlink()]


def python_files() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".py"]


def test_imports_point_down_the_floors():
    done = subprocess.run(
        [sys.executable, ROOT / "tools/lint.py", "--only", "layers"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_room_stands_on_a_floor_and_is_packaged():
    folders = {path.parent.relative_to(ROOT).parts[0] for path in ROOT.glob("*/__init__.py")}
    assert folders - {"tests", "tools", "examples"} == set(ROOMS)
    packages = {name.removeprefix("testbed").lstrip(".").replace(".", "/") for name in found_packages(ROOT)}
    shipped = {path.parent.relative_to(ROOT).as_posix() for path in python_files() if path.name == "__init__.py"}
    expected = {"" if name == "." else name for name in shipped if not name.startswith(("tests", "examples", "tools"))}
    assert packages == expected


def test_no_public_name_reaches_the_top_floor():
    """The root package is below all rooms, but what it offers is not of the command or of the plug-in."""
    table = re.search(r"^_PUBLIC: .*? = (\{.*?^\})", read("__init__.py"), re.S | re.M)
    assert table is not None
    assert not {place.partition(".")[0].rstrip(":") for place in ast.literal_eval(table[1]).values()} & set(FLOORS[0])


def test_the_package_holds_the_ledger_and_no_records_of_past_gates():
    ledgers = {path.name for path in ROOT.glob("migration/*.toml")}
    assert ledgers - set(RECORDS) == set(PROJECT["tool"]["setuptools"]["package-data"]["testbed.migration"])


def test_bazel_has_the_floors_of_the_contract():
    listed = re.search(r"^FLOORS = (\[.*?^\])", read("tools/rooms.bzl"), re.S | re.M)
    assert listed is not None
    assert [set(floor) for floor in ast.literal_eval(listed[1])] == [set(floor) for floor in FLOORS]


@pytest.mark.parametrize("room", ROOMS)
def test_a_rooms_build_file_names_no_other_room(room):
    text = read(f"{room}/BUILD")
    assert f'room(\n    name = "{room}",' in text
    assert set(re.findall(r'"//(\w+)"', text)) <= ({"tools"} if room == "cli" else set())


def test_bazel_runs_every_test_file_once():
    # tests/BUILD compares the groups with this pattern; two targets must not have the same name.
    files = [path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")]
    groups = read_groups(ROOT)
    assert sorted(file for group in groups.values() for file in group) == sorted(file.as_posix() for file in files)
    names = ["_".join(file.with_suffix("").parts) for file in files]
    names += [name for name, group in groups.items() if len(group) > 1]
    assert 'glob(["**/test_*.py"])' in read("tests/BUILD")
    assert len(set(names)) == len(names)
    assert not list((ROOT / "tests").rglob("BUILD"))[1:], "a BUILD file below tests/ hides its folder from tests/BUILD"


LOCKS = {extra: f"locks/requirements-{extra}.txt" for extra in PROJECT["project"]["optional-dependencies"]}


@pytest.mark.parametrize("name", ["locks/requirements.txt", *LOCKS.values()])
def test_the_lock_is_pinned_hashed_and_names_no_index(name):
    text = read(name)
    entries = re.split(r"\n(?=[a-z])", re.sub(r"^#.*\n", "", text, flags=re.M).strip())
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==[\w.]+( ; [^\\]+)? \\\n", entry), entry.splitlines()[0]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}$", entry), entry.splitlines()[0]
    assert "://" not in text and "index" not in text


def test_the_lock_holds_what_pyproject_asks_for():
    asked = {"locks/requirements.txt": PROJECT["project"]["dependencies"]}
    asked |= {LOCKS[extra]: pins for extra, pins in PROJECT["project"]["optional-dependencies"].items()}
    for lock, pins in asked.items():
        versions = dict(re.findall(r"^([a-z0-9-]+)==([\w.]+)", read(lock), re.M))
        for pin in pins:
            name, wanted = re.match(r"([\w-]+)(.*)", re.sub(r" ;.*", "", pin).lower().replace("_", "-")).groups()
            marker = re.search(r"python_version ([<>=]+ '[0-9.]+')", pin)
            if marker:
                assert f"{name}{wanted} ; python_full_version {marker[1]}" in pinned(lock), pin
            else:
                assert within(versions[name], wanted), f"{pin}: run tools/python/lock.py"


def within(version: str, wanted: str) -> bool:
    """Whether a version is in a range such as >=2.0.2,<3, or is the one that == names."""
    found = [int(n) for n in re.findall(r"\d+", version)]
    for sign, bound in re.findall(r"(==|>=|<)([\d.]+)", wanted):
        limit = [int(n) for n in bound.split(".")]
        if not {"==": found == limit, ">=": found >= limit, "<": found < limit}[sign]:
            return False
    return True


def pinned(lock: str) -> set[str]:
    """The pins of a lock with their markers, `numpy==2.4.6`."""
    return {line.removesuffix(" \\") for line in read(lock).splitlines() if re.match(r"[a-z0-9]", line)}


def test_locks_that_are_installed_together_agree():
    both = [pin for lock in ("locks/requirements.txt", *LOCKS.values()) for pin in pinned(lock)]
    versions: dict[str, set[str]] = {}
    for pin in both:
        name, _, version = pin.partition("==")
        versions.setdefault(name, set()).add(version)
    unmarked = {name: found for name, found in versions.items() if len(found) > 1 and not all(";" in v for v in found)}
    assert not unmarked
    assert len(versions["jaxlib"]) == 2, "one for Python 3.11, one for later ones"


def test_what_a_run_does_not_need_is_in_no_runtime_lock():
    names = {pin.partition("==")[0] for pin in pinned("locks/requirements.txt")}
    assert not names & {
        "pytest",
        "hypothesis",
        "mypy",
        "ruff",
        "import-linter",
        "matplotlib",
        "jinja2",
        "jax",
        "jaxlib",
    }


def test_both_llvms_have_the_same_major_version():
    import llvmlite.binding

    assert importlib.metadata.version("xtc-mlir-python-bindings").split(".")[0] == str(
        llvmlite.binding.llvm_version_info[0]
    )


def test_no_tracked_file_names_a_machine_path_or_a_registry_host():
    # The strings are assembled here, so that this file does not contain them.
    hosts = ["py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "deb.deb" + "ian.org"]
    paths = ["/ro" + "ot/", "/ho" + "me/", "/work/" + "main", "/work/" + "shared", "/tmp/" + "venv"]
    pattern = re.compile("|".join(map(re.escape, hosts + paths)).encode())
    found = [
        f"{path.relative_to(ROOT)}: {match[0].decode()}"
        for path in tracked()
        if (match := pattern.search(path.read_bytes()))
    ]
    assert not found


def test_no_tracked_file_is_large_or_fetched():
    archives = (".whl", ".tar.gz", ".tgz", ".zip", ".jar", ".so", ".deb")
    assert not [path for path in tracked() if path.stat().st_size > 2_000_000 or path.name.endswith(archives)]


def test_documents_exist_and_keep_their_length():
    assert len(read("README.md").splitlines()) <= 120
    assert 150 <= len(read("ARCHITECTURE.md").splitlines()) <= 225
    guides = [
        f"docs/{name}.md" for name in ("adding-an-op", "adding-a-backend", "adding-a-custom-call", "lhlo", "testing")
    ]
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", *guides):
        assert read(name)
    decisions = sorted((ROOT / "docs/adr").glob("0*.md"))
    assert len({int(path.name[:4]) for path in decisions}) == len(decisions)
    assert not [path.name for path in decisions if len(path.read_text(encoding="utf-8").splitlines()) > 40]


def test_links_and_files_named_in_the_documents_exist():
    missing = []
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        text = document.read_text(encoding="utf-8")
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            if not (document.parent / target).exists():
                missing.append(f"{document.name}: {target}")
        for target in re.findall(r"`((?:tests|tools|docs)/[\w./-]+\.\w+)`", text):
            if not (ROOT / target).exists():
                missing.append(f"{document.name}: {target}")
    assert not missing


def test_every_invariant_names_tests_that_exist():
    section = read("ARCHITECTURE.md").partition("## Invariants")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 20
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, f"names no test: {row}"
        for file, function in named:
            names = {node.name for node in ast.parse(read(file)).body if isinstance(node, ast.FunctionDef)}
            assert function in names, f"{file} has no {function}"


def test_no_test_file_imports_another():
    # Under Bazel a test sees only its own file and the files that are no tests.
    wrong = {
        f"{path.name} imports from {node.module}: move what both need to a file that is no test"
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[-1].startswith("test_")
    }
    assert not wrong


def test_tests_that_look_at_the_whole_checkout_are_never_cached():
    # A path above the checkout leads to the corpus, which TESTBED_CORPUS names.
    link = re.compile(r"Path\(__file__\)\.resolve\(\)\.parents\[2\]", re.M)
    files = [path for path in python_files() if link.search(path.read_text(encoding="utf-8"))]
    looking = {path.relative_to(ROOT).as_posix().removeprefix("tests/") for path in files}
    listed = re.search(r"WHOLE_CHECKOUT = \[(.*?)\]", read("tests/BUILD"), re.S)
    assert listed is not None
    assert {name for name in looking if "/test_" in name} == set(re.findall(r'"([^"]+)"', listed[1]))


def test_only_the_top_floor_reads_the_environment():
    lower = [path for path in python_files() if path.relative_to(ROOT).parts[0] in set(ROOMS) - set(FLOORS[0])]
    reading = re.compile(r"\benviron(\[[^\]]+\](?! *=)|\.get\b|\.items\b)|\bgetenv\(")
    assert not [str(path.relative_to(ROOT)) for path in lower if reading.search(path.read_text(encoding="utf-8"))]


def test_python_files_open_with_their_job():
    silent = [str(p.relative_to(ROOT)) for p in python_files() if not ast.get_docstring(ast.parse(p.read_bytes()))]
    assert not silent
