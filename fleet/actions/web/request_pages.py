"""Pages with a form that requests a fleet action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from fleet.models import FleetAction
from portal.ui.service_form import ServiceForm


def send_or_show(
    request: HttpRequest,
    form: ServiceForm,
    send: Callable[[], FleetAction],
    template: str,
    context: Mapping[str, Any],
) -> HttpResponse:
    """Send the request of a submitted form and go to its page; show the form if there is nothing to send."""
    if request.method == "POST":
        action = form.run(send)
        if action is not None:
            return show_request(request, action)
    return render(request, template, {"form": form, **context}, status=form.status)


def show_request(request: HttpRequest, action: FleetAction) -> HttpResponse:
    messages.success(request, "Request sent. Waiting for another platform admin.")
    return redirect("fleet-action", action_id=action.pk)
