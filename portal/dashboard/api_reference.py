"""The reference of the REST API: a page with all operations, and one for each group with all there is to know."""

from __future__ import annotations

from functools import cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from portal.accounts.models import User
from portal.core.errors import NotFound
from portal.ui.access import people_only
from portal.ui.docs import api_reference as reference


@require_safe
@people_only
def show_index(request: HttpRequest, user: User) -> HttpResponse:
    return _show(request, _render_index(), title="")


@require_safe
@people_only
def show_group(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    group = reference.find_group(slug)
    if group is None:
        raise NotFound("The API has no such group of operations.")
    return _show(request, _render_group(slug), title=group.name)


def _show(request: HttpRequest, body: SafeString, *, title: str) -> HttpResponse:
    return render(request, "dashboard/api_reference.html", {"body": body, "group_title": title})


# The document and the templates come with the release, and everybody reads the same.
@cache
def _render_index() -> SafeString:
    groups = reference.list_groups()
    count = sum(len(group.operations) for group in groups)
    context = {"groups": groups, "count": count, "problem": reference.describe_problem()}
    return render_to_string("dashboard/_api_index.html", context)


@cache
def _render_group(slug: str) -> SafeString:
    return render_to_string("dashboard/_api_group.html", {"group": reference.find_group(slug)})
