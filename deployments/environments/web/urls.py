"""Addresses of environments."""

from __future__ import annotations

from django.urls import URLPattern, path

from deployments.environments.web import pages

urlpatterns: list[URLPattern] = [
    path("admin/environments", pages.environment_list, name="environments"),
    path("admin/environments/<slug:environment>", pages.platform_rules, name="environment-rules"),
    path(
        "admin/teams/<slug:slug>/environments/<slug:environment>",
        pages.team_rules,
        name="team-environment-rules",
    ),
]
