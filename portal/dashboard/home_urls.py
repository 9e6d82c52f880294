"""The address of the home page. That of a team comes after all other addresses."""

from django.urls import URLPattern, path

from portal.dashboard import home

urlpatterns: list[URLPattern] = [path("", home.home, name="home")]
team_urlpatterns: list[URLPattern] = [path("<slug:team>", home.team_home, name="team-home")]
