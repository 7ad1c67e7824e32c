"""The board in headless Chromium: no errors, no foreign requests; keys, colours, sizes, what is read aloud."""

import pytest

from ...tools.browser import Browser, chromium
from ..support import boards

if chromium() is None:
    pytest.skip("needs chromium (Debian: apt-get install chromium)", allow_module_level=True)

PAGES = ("index", "coverage", "speed", "findings", "finding-a-b-finding", "profiles", "profile-a-b-legacy")

FOCUSED = """(() => { const e = document.activeElement;
  return (e.getAttribute("aria-label") || e.value || e.textContent).trim(); })()"""

LOW_CONTRAST = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const parts = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = (c) => { const [r, g, b] = c.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92
    : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const found = [];
  for (const details of document.querySelectorAll("details")) details.open = true;
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || e.closest("title, desc, style, .flame, .skip, .unseen")) continue;
    const style = getComputedStyle(e);
    const ink = parts(e.namespaceURI.endsWith("svg") ? style.fill : style.color);
    let back = e;
    while (back && parts(getComputedStyle(back).backgroundColor)[3] === 0) back = back.parentElement;
    const [a, b] = [light(ink), light(parts(getComputedStyle(back || document.body).backgroundColor))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push([e.outerHTML.slice(0, 80), ratio]);
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    return boards.make(tmp_path_factory.mktemp("board"))


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        yield found


@pytest.fixture
def at(browser, board):
    """Opens a page of the board, as a reader who has never been there."""

    def opened(page, fragment=""):
        browser.problems.clear()
        browser.open(board / f"{page}.html")
        browser.value("localStorage.clear()")
        browser.open(board / f"{page}.html", fragment)
        return browser

    browser.prefer("light")
    browser.resize(1280)
    return opened


@pytest.mark.parametrize("page", PAGES)
def test_a_page_loads_alone_and_is_readable_in_both_schemes_and_sizes(at, page):
    browser = at(page)
    assert browser.value("document.querySelectorAll('h1').length") == 1
    backs = set()
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        backs.add(browser.value("getComputedStyle(document.body).backgroundColor"))
        assert browser.value(LOW_CONTRAST) == []
    assert len(backs) == 2
    for width in (1280, 400):
        browser.resize(width)
        assert browser.value("document.documentElement.scrollWidth") <= width
    assert not browser.problems
    assert not [url for url in browser.requests if not url.startswith(("file:", "data:,"))]
    assert browser.value("document.querySelectorAll('script').length") == 1, "texts that look like scripts are texts"


def test_tab_reaches_all_in_the_order_of_the_page(at):
    browser = at("index")
    browser.press("Tab")
    assert browser.value(FOCUSED) == "Skip to content"
    seen = []
    for _ in range(13):
        browser.press("Tab")
        seen.append(browser.value(FOCUSED))
    assert seen[0].endswith("testbed board") and seen[1:4] == ["Overview", "Coverage", "Speed"]
    assert seen[4].startswith("Findings") and seen[5:8] == ["Kernels", "Profiles", "auto"]
    assert seen[8] == "Matrix of states, back end host" and seen[9].startswith("elemental float: off")
    outline = browser.value("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_skipping_leads_into_the_page(at):
    browser = at("index")
    browser.press("Tab", "Enter")
    assert browser.value("document.activeElement.id") == "main"
    browser.press("Tab")
    assert browser.value(FOCUSED) == "Matrix of states, back end host"


def test_the_switch_of_colours_is_kept_on_the_next_page(at, board):
    browser = at("index")
    light = browser.value("getComputedStyle(document.body).backgroundColor")
    browser.value("document.querySelector('input[value=auto]').focus()")
    browser.press("ArrowRight", "ArrowRight")
    assert browser.value("document.documentElement.dataset.theme") == "dark"
    dark = browser.value("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    browser.open(board / "speed.html")
    assert browser.value("getComputedStyle(document.body).backgroundColor") == dark
    assert browser.value("document.querySelector('input[value=dark]').checked")
    browser.prefer("dark")
    browser.value("document.querySelector('input[value=dark]').focus()")
    browser.press("ArrowRight", "ArrowRight")  # around, to light
    assert browser.value("getComputedStyle(document.body).backgroundColor") == light


SHOWN = "[...document.querySelectorAll('#evidence-table tbody tr')].filter((row) => !row.hidden).length"


def test_the_filter_says_how_many_rows_are_left(at):
    browser = at("index")
    assert browser.value(SHOWN) == 50
    browser.value("document.querySelector('input[type=search]').focus()")
    browser.press(*"sort")
    assert browser.value(SHOWN) == 5 and browser.value("document.querySelector('output').textContent") == "5 of 50 rows"
    browser.press("Tab", "s")  # the list of states: shadow
    assert browser.value("document.querySelector('select').value") == "shadow"
    assert browser.value(SHOWN) == 1
    browser.value("location.hash = '#row-dot-half-host'")
    browser.value("new Promise((done) => setTimeout(done, 50))")
    assert browser.value(SHOWN) == 50, "a link to a row that is hidden shows it"


def test_tables_are_sorted_by_their_heads(at):
    browser = at("index")
    first = "document.querySelector('#evidence-table tbody th').firstChild.textContent"
    browser.value("[...document.querySelectorAll('th button')].find((b) => b.textContent === 'Run time').focus()")
    browser.press("Enter")
    assert browser.value("document.activeElement.closest('th').ariaSort") == "ascending"
    browser.press(" ")
    assert browser.value("document.activeElement.closest('th').ariaSort") == "descending"
    assert browser.value(first) == "sort.half.host"


def test_stages_open_by_key(at):
    browser = at("finding-a-b-finding")
    browser.value("document.querySelector('summary').focus()")
    browser.press("Enter")
    assert browser.value("document.querySelector('details').open")


def test_a_link_of_the_matrix_leads_to_the_row_with_its_evidence(at):
    browser = at("index", "#row-sort-half-host")
    top = browser.value("document.querySelector(':target').getBoundingClientRect().top")
    bar = browser.value("document.querySelector('.top').getBoundingClientRect().bottom")
    assert bar <= top < 900


def test_what_is_read_aloud_has_names(at):
    browser = at("speed")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    named = {}
    for node in nodes:
        if not node.get("ignored"):
            named.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    assert {"banner", "navigation", "main", "contentinfo"} <= set(named)
    for role in ("link", "button", "image", "img", "region", "radio", "table"):
        assert all(name.strip() for name in named.get(role, [])), role
    assert named["table"]


def test_without_scripts_all_is_there(at, board):
    browser = at("index")
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(board / "index.html")
        document = browser.call("DOM.getDocument", depth=-1)["root"]
        rows = browser.call("DOM.querySelectorAll", nodeId=document["nodeId"], selector="tr[id^=row-]:not([hidden])")
        forms = browser.call("DOM.querySelectorAll", nodeId=document["nodeId"], selector="form:not([hidden])")
        assert len(rows["nodeIds"]) == 50 and forms["nodeIds"] == []
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
