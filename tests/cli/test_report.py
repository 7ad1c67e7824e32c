"""`testbed report`: pages are well formed, say what the evidence says, lead nowhere else, hold what they quote."""

import json
import re
import shutil
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from ...cli.board.coverage import BOTH, coverage
from ...cli.board.pages import MANIFEST
from ...cli.main import main
from ...legacy.numerics import elementwise as legacy
from ...migration.ledger import OPTIONS, new_ledger
from ...migration.ledger_states import STATES
from ...migration.units import CLASSES, UNITS
from ..support import boards
from ..support.ledgers import ledger_file

VOID = {"meta", "link", "input", "br"}
EMPTY_IN_SVG = {"rect", "line", "circle", "path", "polyline"}
WITHOUT_SCHEME = re.compile(r"^(?![a-z]+:|//)")


class Page(HTMLParser):
    """The elements of a page: (name, attributes, words inside); what is not closed as it was opened is an error."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.errors = [], [], []
        self.feed(text)
        self.close()
        self.errors += [f"{name} stays open" for name, _, _ in self.open]

    def handle_starttag(self, tag, attributes):
        element = (tag, dict(attributes), [])
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes), []))
        if tag not in VOID | EMPTY_IN_SVG:
            self.errors.append(f"<{tag}/>")

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            self.errors.append(f"</{tag}> at {self.getpos()}")
        else:
            self.open.pop()

    def handle_data(self, data):
        for _, _, words in self.open:
            words.append(data)

    def all(self, *tags):
        return [e for e in self.elements if e[0] in tags]

    @property
    def ids(self):
        return [a["id"] for _, a, _ in self.elements if "id" in a]


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    return boards.make(tmp_path_factory.mktemp("board"))


@pytest.fixture(scope="module")
def pages(board):
    return {path.name: Page(path.read_text(encoding="utf-8")) for path in board.glob("*.html")}


def words(element):
    return " ".join("".join(element[2]).split())


# -- form -------------------------------------------------------------------------------------------------------------
def test_pages_are_well_formed_and_ids_are_unique(pages):
    assert len(pages) == 8
    for name, page in pages.items():
        assert not page.errors, name
        assert len(page.ids) == len(set(page.ids)), name
    titles = [words(page.all("title")[0]) for page in pages.values()]
    assert len(set(titles)) == len(pages)


def test_every_link_leads_to_something_on_the_board(board, pages):
    for name, page in pages.items():
        for _, attributes, _ in page.elements:
            for key in ("href", "src"):
                target = attributes.get(key)
                if target is None or target == "data:,":
                    continue
                assert WITHOUT_SCHEME.match(target), (name, target)
                file, _, fragment = target.partition("#")
                assert (board / (file or name)).is_file(), (name, target)
                if fragment:
                    assert fragment in pages[file or name].ids, (name, target)
            assert not [key for key in attributes if key.startswith("on")]
    assert "url(" not in (board / "board.css").read_text() and "@import" not in (board / "board.css").read_text()


def test_what_readers_of_the_screen_need(pages):
    for name, page in pages.items():
        assert page.all("html")[0][1]["lang"] == "en"
        assert [len(page.all(tag)) for tag in ("header", "nav", "main", "footer", "h1")] == [1] * 5, name
        assert page.all("a")[0][1]["href"] == "#main", "the first thing to reach skips what is on every page"
        current = [words(a) for a in page.all("a") if a[1].get("aria-current") == "page"]
        assert len(current) == 1, name
        for _, attributes, _ in page.all("th"):
            assert attributes["scope"] in ("row", "col")
        assert len(page.all("caption")) == len(page.all("table"))
        for _, attributes, _ in page.elements:
            for key in ("aria-labelledby", "aria-describedby"):
                assert set(attributes.get(key, "").split()) <= set(page.ids)
            if attributes.get("tabindex") == "0":
                assert "aria-label" in attributes or "aria-labelledby" in attributes
        for _, attributes, _ in page.all("svg"):
            assert attributes["role"] == "img" and ("aria-label" in attributes or "aria-labelledby" in attributes)
        for element in page.all("a", "summary", "button", "figcaption"):
            assert words(element) or element[1].get("aria-label")
        levels = [int(tag[1]) for tag, _, _ in page.all("h1", "h2", "h3")]
        assert levels[0] == 1 and all(b - a <= 1 for a, b in pairwise(levels))


def contrast(a, b):
    """WCAG's contrast of two colours #rrggbb."""

    def light(colour):
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_words_stand_out_from_what_is_behind_them_in_light_and_dark(board):
    css = (board / "board.css").read_text()
    colours = {m[1]: (m[2], m[3]) for m in re.finditer(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", css)}
    assert len(colours) >= 18
    pairs = [(ink, back) for ink in ("ink", "soft", "link") for back in ("page", "card", "band")]
    for state in STATES:
        pairs += [(state, "card"), (state, f"{state}-back"), ("ink", f"{state}-back"), ("soft", f"{state}-back")]
    low = [(p, n) for p in pairs for n in (0, 1) if contrast(colours[p[0]][n], colours[p[1]][n]) < 4.5]
    assert not low


# -- content ----------------------------------------------------------------------------------------------------------
def test_the_matrix_has_a_cell_for_every_row_and_its_evidence(pages):
    page = pages["index.html"]
    cells = [e for e in page.all("td") if e[1].get("class", "").startswith("cell")]
    assert len(cells) == len(UNITS) * len(CLASSES) == len([i for i in page.ids if i.startswith("row-")])
    states = {state: sum(e[1]["class"] == f"cell {state}" for e in cells) for state in STATES}
    assert states["removed"] == 1 and states["shadow"] == 1 and states["on"] == 2
    rows = {e[1]["id"]: words(e) for e in page.all("tr") if "id" in e[1]}
    assert "1.01" in rows["row-reduce-float-host"] and "0.99–1.03" in rows["row-reduce-float-host"]
    assert "7 of 9" in rows["row-reduce-float-host"] and " of " not in rows["row-sort-half-host"]
    assert "refused: 1.2 < 3 & more" in rows["row-dot-half-host"]
    assert f"EXPIRED on {boards.DAY}: an <em>old</em> reason" in rows["row-dot-float-host"]
    assert "none" in rows["row-sort-complex-host"]
    text = words(page.all("main")[0])
    assert all(f"{number} {name}" in text for number, name in OPTIONS.items())
    assert "3 of 50 rows of the ledger are on" in text and "1 open finding" in text


def test_coverage_is_what_the_tables_of_the_stacks_say(monkeypatch):
    from ...hlo.opcodes import Op

    full = coverage()
    assert full.holes == 0 and full.pairs > 1000
    assert {line.way for line in full.lines} == {"kernel", "library", "host", "frame", "rewritten"}
    monkeypatch.delitem(legacy.EMIT, Op.TANH)
    less = {line.opcode: line for line in coverage().lines}
    emitted = [cell.emitted for cell in less["tanh"].cells]
    assert set(emitted) == {"mlir", "–"} and BOTH in {cell.emitted for cell in less["abs"].cells}
    assert coverage().holes == sum(len(types) for types, e in zip(coverage().columns, emitted) if e == "mlir") > 10


def test_a_stack_that_is_removed_is_no_hole(monkeypatch):
    monkeypatch.setattr("testbed.cli.board.coverage.present", lambda: ("mlir",))
    alone = coverage()
    assert alone.stacks == ("mlir",) and alone.holes == 0 and alone.pairs > 1000
    assert {c.emitted for line in alone.lines for c in line.cells} == {"mlir", "–"}


def test_pairs_that_ran_on_every_input_are_marked(pages):
    rows = {words(e).split()[0].split("unary")[0]: e for e in pages["coverage.html"].all("tr")}
    text = words(rows["not"])
    assert "∀ 1/7" in text and "✗ 1" in text
    others = [words(e) for e in pages["coverage.html"].all("span") if e[1].get("class") in ("all", "wrong")]
    assert others == ["∀ 1/7", "✗ 1"], "one direction of compare is not all of it"


def test_every_opcode_is_on_the_page_of_coverage(pages):
    from ...hlo.opset import OPSET

    heads = {words(e) for e in pages["coverage.html"].all("th") if e[1]["scope"] == "row"}
    assert heads == {op.value for op in OPSET}


def test_plots_say_their_numbers(pages):
    page = pages["speed.html"]
    titles = [words(e) for e in page.all("title")]
    assert any(t.startswith("reduce.float.host, on: run time 1.01 (95% interval 0.99 to 1.03)") for t in titles)
    assert any(t.endswith("1.200 [1.100, 1.300], changed") for t in titles)
    text = words(page.all("main")[0])
    assert "p <q>: mlir / legacy on machine m" in text and "2 comparisons; 1 with an interval" in text
    assert "Drift since 0123abc: 1.200 [1.089, 1.313]*: it is sure." in text
    assert "mlir 0.500 (1)" in text and "mlir 0.250 (1)" in text
    assert "Suite: mlir / xla on machine m, 1 thread" in text and "2026-03-02, 0123abc: 0.250" in titles
    assert {"3.5", "0.3"} <= {words(e) for e in page.all("text")}, "what lies beyond an axis has its number"


def test_a_finding_has_its_module_and_both_irs_side_by_side(pages):
    page = pages["finding-a-b-finding.html"]
    shown = [words(e) for e in page.all("pre")]
    assert boards.TEXT.split() == shown[1].split()
    captions = [words(e) for e in page.all("figcaption")]
    assert captions[:3] == ["Module", "LLVM IR legacy", "LLVM IR mlir"]
    assert "</pre><script>alert(2)</script>\ufffd ]]> &amp; <!--" in shown[2] and shown[3] == "define"
    assert [words(e) for e in page.all("summary")] == ["LHLO mlir", "Assembly legacy, mlir", "Thunks mlir", "Unit test"]
    assert "700 more lines are in the finding's folder." in words(page.all("main")[0])
    text = words(page.all("main")[0])
    assert "legacy <differs> & more" in text and "the <emitter>. It is & was." in text
    assert "negate of <mlir>noall agree" in text
    assert [a[1].get("src") for a in page.all("script")] == ["board.js"]


def test_a_profile_has_its_steps_and_its_flames(pages):
    page = pages["profile-a-b-legacy.html"]
    heads = [words(e) for e in page.all("th") if e[1]["scope"] == "row"]
    assert {"while.1", "<i>", "add.1", "between steps", "entry"} <= set(heads)
    (flames,) = page.all("svg")
    assert "a & b, legacy" in flames[1]["aria-label"] and "light-dark(" in words(page.all("style")[0])


def test_an_empty_board_says_what_would_fill_it(tmp_path, capsys):
    assert main(["report", "-o", str(tmp_path / "b"), "--ledger", str(ledger_file(tmp_path, new_ledger()))]) == 0
    texts = {p.name: words(Page(p.read_text()).all("main")[0]) for p in (tmp_path / "b").glob("*.html")}
    assert "--findings DIR" in texts["findings.html"] and "--profile FILE" in texts["profiles.html"]
    assert "--history FILE" in texts["speed.html"] and "0 of 50 rows" in texts["index.html"]
    assert "open" in capsys.readouterr().out


# -- the folder -------------------------------------------------------------------------------------------------------
def test_equal_input_gives_equal_files_and_a_board_is_replaced(tmp_path, board):
    out = tmp_path / "again"
    shutil.copytree(board, out)
    (out / "index.html").write_text("old")
    arguments = ["report", "-o", str(out), *boards.inputs(tmp_path)]
    assert main(arguments) == 0
    first = {p.name: p.read_bytes() for p in out.iterdir()}
    assert main(arguments) == 0
    assert {p.name: p.read_bytes() for p in out.iterdir()} == first
    assert set(json.loads(first[MANIFEST])["files"]) == set(first)
    assert sum(map(len, first.values())) < 300_000
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


@pytest.mark.parametrize("stranger", ["notes.txt", MANIFEST])
def test_a_foreign_folder_is_never_replaced(tmp_path, board, capsys, stranger):
    out = tmp_path / "b"
    shutil.copytree(board, out)
    (out / stranger).write_text('{"kind": "mine"}')
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    assert main(["report", "-o", str(out)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "exists and is not an empty folder" in line
    assert {p.name: p.read_bytes() for p in out.iterdir()} == before and list(tmp_path.iterdir()) == [out]


def cases(folder):
    (folder / "empty").mkdir()
    (folder / "torn.json").write_text('{"kind": "testbed-prof')
    (folder / "other.json").write_text("[1]")
    (folder / "few.json").write_text('{"schema": 2, "stacks": ["evaluator", "mlir"], "results": []}')
    (folder / "bytes").write_bytes(b"\xff\xfe\x00")
    (folder / "bad/f").mkdir(parents=True)
    (folder / "bad/f/case.json").write_text('{"schema": 1}')
    (folder / "bad/f/module.hlo").write_text(boards.TEXT)
    (boards.finding(folder / "torn") / "bisect.json").write_text('{"culprit": "x"}')


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--findings", "gone"], "gone: no such folder"),
        (["--findings", "empty"], "empty: holds no finding"),
        (["--findings", "bad"], "bad/f/case.json: not a case"),
        (["--findings", "torn/findings"], "bisect.json: not what testbed bisect --json prints"),
        (["--findings", "torn.json"], "torn.json: no such folder"),
        (["--profile", "gone.json"], "gone.json"),
        (["--profile", "torn.json"], "torn.json: not JSON"),
        (["--profile", "other.json"], "other.json: JSON, but no profile"),
        (["--profile", "bytes"], "bytes"),
        (["--exhaustive", "gone.json"], "gone.json: No such file"),
        (["--exhaustive", "other.json"], "other.json: no results of testbed exhaustive"),
        (["--exhaustive", "few.json"], "few.json: results of evaluator, mlir"),
        (["--history", "gone.jsonl"], "gone.jsonl"),
        (["--history", "torn.json"], "torn.json: neither comparisons of testbed ab nor runs of the suite"),
        (["--history", "empty"], "empty"),
        (["--ledger", "torn.json"], "torn.json:1:"),
        (["--weights", "torn.json"], "torn.json: no weights"),
        (["-o", "torn.json"], "torn.json: exists"),
        (["-o", "torn.json/b"], "torn.json/b: cannot write"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path, monkeypatch, capsys, arguments, what):
    cases(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert main(["report", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("testbed: error: ") and what in line
    assert sorted(tmp_path.rglob("*")) == before


def test_a_campaign_without_findings_is_no_error(tmp_path):
    (tmp_path / "campaign.json").write_text("{}")
    assert main(["report", "-o", str(tmp_path / "b"), "--findings", str(tmp_path)]) == 0
    assert "hold no finding" in words(Page((tmp_path / "b/findings.html").read_text()).all("main")[0])


def test_a_finding_is_shown_by_the_smaller_one_in_its_folder(tmp_path):
    place = boards.finding(tmp_path)
    shutil.copytree(place, place / "small")
    (place / "small/verdict.txt").write_text("of the small one\n")
    assert main(["report", "-o", str(tmp_path / "b"), "--findings", str(tmp_path)]) == 0
    (page,) = (tmp_path / "b").glob("finding-*.html")
    text = words(Page(page.read_text()).all("main")[0])
    assert "of the small one" in text and "A <b>&finding" in text and page.name == "finding-a-b-finding.html"
