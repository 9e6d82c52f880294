"""The address of the home page."""

from django.urls import URLPattern, path

from portal.dashboard import home

urlpatterns: list[URLPattern] = [path("", home.home, name="home")]
