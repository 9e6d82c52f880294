"""Template tags and filters of the look."""

from django import template

register = template.Library()
