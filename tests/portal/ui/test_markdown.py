"""A README is written by one person and shown to others."""

from __future__ import annotations

import pytest

from portal.ui import markdown


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "text <b onclick=x>bold</b>",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](data:text/html;base64,PHNjcmlwdD4=)",
        "[a](vbscript:x)",
        "[a](//evil.example/x)",
        "[a](/logout)",
        "<javascript:alert(1)>",
        "![a](javascript:alert(1))",
        "[a]: javascript:alert(1)\n\n[a]",
        "![x](https://evil.example/p.png)",
        '[a](https://x.example "\\" onmouseover=alert(1) x=\\"")',
        "```<script>\nx\n```",
    ],
)
def test_nothing_of_it_runs_or_is_loaded(text: str) -> None:
    html = markdown.render(text)

    without_text = html.replace("&lt;", "").replace("&quot;", "")
    for tag in ("<script", "<img", "<b ", 'href="javascript', 'href="data', 'href="/'):
        assert tag not in without_text.lower()
    assert "evil.example/x" not in html or "<a" not in html


def test_what_people_write_is_shown() -> None:
    html = markdown.render(
        "# Detector\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n[run](https://runs.example/7) "
        "![chart](https://x.example/c.png)\n\n```python\nx < 1\n```\n"
    )

    assert "<h1>Detector</h1>" in html
    assert "<td>1</td>" in html
    link = '<a href="{}" rel="noopener noreferrer nofollow" class="link">{}</a>'
    assert link.format("https://runs.example/7", "run") in html
    assert link.format("https://x.example/c.png", "chart") in html
    assert '<code class="language-python">x &lt; 1' in html
