"""Describe a browser by its User-Agent header. A hint for its owner and nothing else: anyone can send any."""

from __future__ import annotations

from typing import Final

# The first that occurs counts: most browsers also name those below them.
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
    ("curl", "curl"),
    ("python", "a Python program"),
)
_SYSTEMS: Final = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def describe(user_agent: str) -> str:
    """Describe a browser by its user agent: "Firefox on Linux", for example, or "Unknown browser" if it is not
    recognised.
    """
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    if browser and system:
        return f"{browser} on {system}"
    return browser or (f"A browser on {system}" if system else "Unknown browser")
