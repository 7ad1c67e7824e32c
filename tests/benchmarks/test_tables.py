"""Tables as text."""

from ...benchmarks.tables import left, right, text_table


def test_a_table_is_the_same_text_wherever_it_goes(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("FORCE_COLOR", "1")
    name = "a [red]name[/red] :smile: " + "x" * 200
    text = text_table([left("name"), right("ms"), left("of")], [(name, "1.5", "f32[4,8]{1,0}"), ("b", "10.25", "")])
    width = len(name)
    assert text.splitlines() == [
        f"{'name':<{width}}     ms  of",
        f"{name}    1.5  f32[4,8]{{1,0}}",
        f"{'b':<{width}}  10.25",
    ]
    assert text_table([left("name")], []) == "name"
