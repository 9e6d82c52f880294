"""Who may do what: the actions, the roles that may, and what a token must be allowed."""

from __future__ import annotations

from enum import StrEnum

from portal.accounts.models import Role
from portal.accounts.scopes import Scope


class Action(StrEnum):
    VIEW = "view"
    UPLOAD = "upload versions"
    REQUEST_CHANGE = "request changes"
    STOP = "abort or pause"
    MOVE_ALIAS = "move aliases"
    MOVE_PROTECTED_ALIAS = "move protected aliases"
    APPROVE = "approve change requests"
    EMERGENCY_OVERRIDE = "use or review an emergency override"
    PROMOTE = "promote a rollout"
    MANAGE_CALLERS = "create or revoke keys of callers"
    SILENCE_ALERTS = "silence alerts"
    MANAGE_PRESETS = "save or delete presets"
    CHOOSE_LOAD_TESTS = "choose where load tests run"
    REQUEST_FLEET_ACTION = "request fleet actions"
    DECIDE_FLEET_ACTION = "decide on fleet actions"
    MANAGE_ENVIRONMENTS = "change rules of environments"
    RELEASE_QUARANTINE = "release a quarantined version"
    MANAGE_MEMBERS = "manage members"
    VIEW_AUDIT = "read the audit trail"
    MANAGE_TEAM = "manage teams, quotas and budgets"
    MANAGE_PLATFORM = "manage clusters, prices and policies"


ADMIN = "admin"
RULES: dict[Action, frozenset[str]] = {
    Action.VIEW: frozenset({Role.VIEWER, Role.MEMBER, Role.LEAD, ADMIN}),
    Action.UPLOAD: frozenset({Role.MEMBER, Role.LEAD, ADMIN}),
    Action.REQUEST_CHANGE: frozenset({Role.MEMBER, Role.LEAD, ADMIN}),
    Action.STOP: frozenset({Role.MEMBER, Role.LEAD, ADMIN}),
    Action.MOVE_ALIAS: frozenset({Role.MEMBER, Role.LEAD, ADMIN}),
    Action.MOVE_PROTECTED_ALIAS: frozenset({Role.LEAD, ADMIN}),
    Action.APPROVE: frozenset({Role.LEAD, ADMIN}),
    Action.EMERGENCY_OVERRIDE: frozenset({Role.LEAD, ADMIN}),
    Action.PROMOTE: frozenset({Role.LEAD, ADMIN}),
    Action.MANAGE_CALLERS: frozenset({Role.LEAD, ADMIN}),
    Action.SILENCE_ALERTS: frozenset({Role.LEAD, ADMIN}),
    Action.MANAGE_PRESETS: frozenset({Role.LEAD, ADMIN}),
    Action.CHOOSE_LOAD_TESTS: frozenset({Role.LEAD, ADMIN}),
    Action.REQUEST_FLEET_ACTION: frozenset({Role.LEAD, ADMIN}),
    Action.DECIDE_FLEET_ACTION: frozenset({ADMIN}),
    Action.MANAGE_ENVIRONMENTS: frozenset({Role.LEAD, ADMIN}),
    Action.RELEASE_QUARANTINE: frozenset({ADMIN}),
    Action.MANAGE_MEMBERS: frozenset({Role.LEAD, ADMIN}),
    Action.VIEW_AUDIT: frozenset({Role.LEAD, ADMIN}),
    Action.MANAGE_TEAM: frozenset({ADMIN}),
    Action.MANAGE_PLATFORM: frozenset({ADMIN}),
}
# What the token of a request must have; None: no token may. Service accounts never decide or manage.
SCOPES: dict[Action, Scope | None] = {
    Action.VIEW: Scope.READ,
    Action.UPLOAD: Scope.UPLOAD,
    Action.REQUEST_CHANGE: Scope.REQUEST,
    Action.STOP: Scope.DECIDE,
    Action.MOVE_ALIAS: Scope.UPLOAD,
    Action.MOVE_PROTECTED_ALIAS: Scope.DECIDE,
    Action.APPROVE: Scope.DECIDE,
    Action.EMERGENCY_OVERRIDE: None,
    Action.PROMOTE: Scope.DECIDE,
    Action.MANAGE_CALLERS: Scope.DECIDE,
    Action.SILENCE_ALERTS: Scope.DECIDE,
    Action.MANAGE_PRESETS: Scope.DECIDE,
    Action.CHOOSE_LOAD_TESTS: Scope.DECIDE,
    Action.REQUEST_FLEET_ACTION: Scope.REQUEST,
    Action.DECIDE_FLEET_ACTION: Scope.DECIDE,
    Action.MANAGE_ENVIRONMENTS: None,
    Action.RELEASE_QUARANTINE: None,
    Action.MANAGE_MEMBERS: None,
    Action.VIEW_AUDIT: None,
    Action.MANAGE_TEAM: None,
    Action.MANAGE_PLATFORM: None,
}
# Four eyes: the requester may not decide, nor whoever counts as one person with them. Of a quarantined version that
# is who uploaded it.
NOT_THE_REQUESTER = frozenset(
    {Action.APPROVE, Action.EMERGENCY_OVERRIDE, Action.PROMOTE, Action.RELEASE_QUARANTINE}
)
# Actions that a delegate may perform for the lead.
DELEGABLE = frozenset({Action.APPROVE})
