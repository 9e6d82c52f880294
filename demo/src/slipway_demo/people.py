"""The demo's accounts, teams and roles."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

ROLES: Final = {
    "member": "member of vision: uploads and requests",
    "lead": "lead of vision: approves and promotes",
    "lead2": "second lead of vision",
    "viewer": "viewer of vision: read-only",
    "nlp-member": "member of another team, nlp",
    "admin": "platform admin: sees every team",
}
# Slug: name, GPU quota, dollars a month
TEAMS: Final = {"vision": ("Vision", 6, Decimal(4000)), "nlp": ("Language", 2, Decimal(1500))}
MEMBERS: Final = {
    "vision": {"member": "member", "lead": "lead", "lead2": "lead", "viewer": "viewer"},
    "nlp": {"nlp-member": "member"},
}
ADMIN: Final = "admin"
