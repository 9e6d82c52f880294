"""Pages that join both domains, and the frame's own addresses."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from portal.dashboard import frame

urlpatterns: list[URLPattern | URLResolver] = [
    path("theme", frame.theme, name="theme"),
    path("charts/vega-<str:version>.js", frame.chart_script, name="chart-bundle"),
    path("", include("portal.dashboard.home_urls")),
]
