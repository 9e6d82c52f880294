"""Addresses of approval rules."""

from __future__ import annotations

from django.urls import URLPattern, path

from deployments.approvals.web import admin_rules

urlpatterns: list[URLPattern] = [
    path("admin/policy", admin_rules.rule_list, name="admin-policy"),
    path("admin/policy/<int:rule_id>", admin_rules.rule, name="admin-policy-rule"),
    path("admin/policy/<int:rule_id>/switch", admin_rules.switch, name="admin-policy-switch"),
    path("admin/policy/<int:rule_id>/delete", admin_rules.delete, name="admin-policy-delete"),
]
