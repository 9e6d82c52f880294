"""Pages are for people who signed in; the view gets them as a User."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse

from portal.accounts.models import User

P = ParamSpec("P")


def people_only(
    view: Callable[Concatenate[HttpRequest, User, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Send others to the sign-in page, and back here afterwards."""

    @wraps(view)
    def wrapper(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not isinstance(request.user, User):
            return redirect_to_login(request.get_full_path())
        return view(request, request.user, *args, **kwargs)

    return wrapper
