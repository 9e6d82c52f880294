"""The shared parts of pages of platform admins: who may open them, their heading, and the answer to a button."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render

from portal.accounts import policy
from portal.accounts.models import User
from portal.core.errors import Conflict
from portal.ui.access import people_only

P = ParamSpec("P")


def admins_only(
    view: Callable[Concatenate[HttpRequest, User, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Wrap a view as `people_only` does, and refuse everyone but a platform admin."""

    @wraps(view)
    def wrapper(
        request: HttpRequest, user: User, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponseBase:
        policy.require_platform_admin(user)
        return view(request, user, *args, **kwargs)

    return people_only(wrapper)


@dataclass(frozen=True, slots=True)
class AdminPage:
    """A page of platform admins. `tab` is its name in the row of tabs, `url` that of its address. The template
    extends ui/admin_page.html.
    """

    title: str
    explanation: str
    tab: str
    url: str
    template: str

    def show(
        self, request: HttpRequest, context: Mapping[str, Any], *, status: int = 200
    ) -> HttpResponse:
        return render(request, self.template, {**context, "admin_page": self}, status=status)

    def redirect_with_message(self, request: HttpRequest, message: str) -> HttpResponse:
        """Redirect back to the page, with a message."""
        messages.success(request, message)
        return redirect(self.url)

    def answer(
        self, request: HttpRequest, action: Callable[[], object], message: str
    ) -> HttpResponse:
        """Run an action, and show `message`, or why it is refused in this state."""
        try:
            action()
        except Conflict as error:
            messages.error(request, error.message)
            return redirect(self.url)
        return self.redirect_with_message(request, message)
