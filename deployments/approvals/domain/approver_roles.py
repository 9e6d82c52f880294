"""The roles that rules require, and the roles in which people approve."""

from __future__ import annotations

from enum import StrEnum


class RequiredRole(StrEnum):
    """The role that a rule requires of approvers, besides the people that it names."""

    LEAD = "lead"
    ADMIN = "admin"
    NAMED = "named"


class ApproverRole(StrEnum):
    """The role in which someone approves."""

    LEAD = "lead"
    ADMIN = "admin"
    DELEGATE = "delegate"
    NAMED = "named"
