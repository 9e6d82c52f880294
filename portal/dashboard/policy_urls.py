"""Addresses of approval rules and of delegates."""

from __future__ import annotations

from django.urls import URLPattern, path

from portal.dashboard import admin_policy

urlpatterns: list[URLPattern] = [
    path("admin/policy", admin_policy.rule_list, name="admin-policy"),
    path("admin/policy/<int:rule_id>", admin_policy.rule, name="admin-policy-rule"),
    path("admin/policy/<int:rule_id>/switch", admin_policy.switch, name="admin-policy-switch"),
    path("admin/teams/<str:slug>/delegates", admin_policy.name_delegate, name="admin-delegates"),
    path(
        "admin/teams/<str:slug>/delegates/<int:delegation_id>/end",
        admin_policy.end_delegation,
        name="admin-delegation-end",
    ),
]
