"""The reference of the REST API: a page with all operations, and one for each group with all there is to know."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from portal.accounts.models import User
from portal.core import cache
from portal.core.errors import NotFound
from portal.ui.access import people_only
from portal.ui.docs import api_reference as reference

# The document comes with the release, and its digest is in the key.
_KEPT_SECONDS: Final = 24 * 3600


@require_safe
@people_only
def show_index(request: HttpRequest, user: User) -> HttpResponse:
    return _show(request, "", "", _render_index)


@require_safe
@people_only
def show_group(request: HttpRequest, user: User, slug: str) -> HttpResponse:
    group = reference.find_group(slug)
    if group is None:
        raise NotFound("The API has no such group of operations.")
    return _show(request, slug, group.name, partial(_render_group, group))


def _show(
    request: HttpRequest, slug: str, title: str, make: Callable[[], SafeString]
) -> HttpResponse:
    key = ("api-reference", reference.compute_version(), slug)
    context = {"body": cache.recent(key, make, seconds=_KEPT_SECONDS), "group_title": title}
    return render(request, "dashboard/api_reference.html", context)


def _render_index() -> SafeString:
    groups = reference.list_groups()
    count = sum(len(group.operations) for group in groups)
    context = {"groups": groups, "count": count, "problem": reference.describe_problem()}
    return _render("dashboard/_api_index.html", context)


def _render_group(group: reference.OperationGroup) -> SafeString:
    return _render("dashboard/_api_group.html", {"group": group})


def _render(template: str, context: dict[str, Any]) -> SafeString:
    return render_to_string(template, context)
