"""The summary at the end of a run of the tests."""

from pathlib import Path
from types import SimpleNamespace


def summary(request, reasons):
    """The lines for expected failures with these reasons."""
    lines = []
    reporter = SimpleNamespace(
        stats={"xfailed": [SimpleNamespace(wasxfail=reason) for reason in reasons]} if reasons else {},
        section=lambda title, sep: lines.append(title),
        write_line=lines.append,
    )
    request.config.pluginmanager.get_plugin(str(Path(__file__).with_name("conftest.py"))).pytest_terminal_summary(
        reporter
    )
    return lines


def test_reasons_of_expected_failures_are_a_line_each(request):
    assert summary(request, ["a", "b", "a"]) == ["expected failures", "2 x a", "1 x b"]
    assert summary(request, []) == []
