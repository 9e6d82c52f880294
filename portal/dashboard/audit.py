"""The audit page, with its filter in the URL."""

from __future__ import annotations

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.accounts.models import User
from portal.dashboard import audit_stream
from portal.dashboard.audit_stream import AuditFilter
from portal.ui import htmx
from portal.ui.access import people_only
from portal.ui.addresses import with_query
from portal.ui.lists import day_field


class AuditQuery(forms.Form):
    """The filter of the audit page. Invalid parameters do not filter, so that a mistyped URL still shows a page."""

    q = forms.CharField(required=False, max_length=100)
    team = forms.CharField(required=False, max_length=32)
    action = forms.CharField(required=False, max_length=60)
    start = day_field()
    end = day_field()
    before = forms.IntegerField(required=False)

    def to_filter(self) -> AuditFilter:
        self.full_clean()
        data = self.cleaned_data
        return AuditFilter(
            text=data.get("q", "").strip(),
            team_slug=data.get("team", ""),
            action=data.get("action", ""),
            start=data.get("start"),
            end=data.get("end"),
            before_id=data.get("before"),
        )


@require_GET
@people_only
def audit_page(request: HttpRequest, user: User) -> HttpResponse:
    filters = AuditQuery(request.GET).to_filter()
    page = audit_stream.read(actor=user, filters=filters)
    next_url = with_query(request, before=page.next_before_id) if page.next_before_id else ""
    context = {"page": page, "filters": filters, "next_url": next_url}
    name = htmx.template_for(
        request, page="dashboard/audit.html", fragment="dashboard/_audit_stream.html"
    )
    return render(request, name, context)
