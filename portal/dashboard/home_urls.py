"""The address of the home page. Those of a team come after all other addresses."""

from __future__ import annotations

from django.urls import URLPattern, path, register_converter

from portal.accounts.teams import RESERVED_ADDRESSES
from portal.dashboard import home


class TeamConverter:
    """The short name of a team: `/metrics`, which is no page, asks nobody to sign in."""

    regex = "[-a-z0-9]+"

    def to_python(self, value: str) -> str:
        if value in RESERVED_ADDRESSES:
            raise ValueError(f"{value} is the address of a page, not of a team.")
        return value

    def to_url(self, value: str) -> str:
        return value


register_converter(TeamConverter, "team")

urlpatterns: list[URLPattern] = [path("", home.home, name="home")]
team_urlpatterns: list[URLPattern] = [
    path("<team:team>", home.team_home, name="team-home"),
    path("<team:team>/dismissed", home.dismiss, name="home-dismiss"),
    path("<team:team>/dismissed/restore", home.restore, name="home-restore"),
]
