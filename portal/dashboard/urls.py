"""URLs of pages that join both domains, and of the frame."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from deployments.delivery.web import admin_git
from fleet.clusters.web import admin_clusters, admin_serving
from fleet.prices.web import admin_prices
from portal.dashboard import (
    account,
    admin,
    api_reference,
    audit,
    channels,
    delegates,
    documents,
    frame,
    gallery,
    home,
    jump,
    people,
    provisioning,
    service_accounts,
    slots,
)

slots.fill()

urlpatterns: list[URLPattern | URLResolver] = [
    path("ui/", gallery.show_components, name="components"),
    path("theme", frame.theme, name="theme"),
    path("session", frame.session, name="session"),
    path("charts/vega-<str:version>.js", frame.chart_script, name="chart-bundle"),
    path("docs/api", api_reference.show_index, name="api-docs"),
    path("docs/api/<slug:slug>", api_reference.show_group, name="api-docs-group"),
    path("docs", documents.document, name="documents"),
    path("docs/<str:name>", documents.document, name="document"),
    path("docs/adr/<str:record>", documents.record, name="document-record"),
    path("jump", jump.jump, name="jump"),
    path("audit", audit.audit_page, name="audit"),
    path("admin", admin.team_list, name="admin"),
    path("admin/dismissed", home.dismiss_on_platform, name="platform-dismiss"),
    path("admin/dismissed/restore", home.restore_on_platform, name="platform-restore"),
    path("admin/teams/<str:slug>", admin.team_detail, name="admin-team"),
    path("admin/teams/<str:slug>/limits", admin.set_limits, name="admin-team-limits"),
    path("admin/teams/<str:slug>/members", admin.set_member, name="admin-team-members"),
    path(
        "admin/teams/<str:slug>/members/<str:username>/remove",
        admin.remove_member,
        name="admin-team-remove",
    ),
    path("admin/teams/<str:slug>/service-accounts", service_accounts.create, name="admin-services"),
    path(
        "admin/teams/<str:slug>/service-accounts/<str:account>/rotate",
        service_accounts.rotate,
        name="admin-service-rotate",
    ),
    path(
        "admin/teams/<str:slug>/service-accounts/<str:account>/revoke",
        service_accounts.revoke,
        name="admin-service-revoke",
    ),
    path("admin/teams/<str:slug>/delivery", admin_git.set_delivery, name="admin-team-delivery"),
    path(
        "admin/teams/<str:slug>/delivery/test",
        admin_git.test_delivery,
        name="admin-team-delivery-test",
    ),
    path("admin/provisioning", provisioning.provisioning, name="admin-provisioning"),
    path(
        "admin/provisioning/<int:token_id>/revoke",
        provisioning.revoke,
        name="admin-provisioning-revoke",
    ),
    path("admin/people", people.people_list, name="admin-people"),
    path("admin/people/<str:username>", people.person_page, name="admin-person"),
    path("admin/people/<str:username>/connect", people.connect, name="admin-person-connect"),
    path(
        "admin/people/<str:username>/deactivate",
        people.deactivate,
        name="admin-person-deactivate",
    ),
    path(
        "admin/people/<str:username>/reactivate",
        people.reactivate,
        name="admin-person-reactivate",
    ),
    path("admin/clusters", admin_clusters.cluster_page, name="admin-clusters"),
    path("admin/clusters/new", admin_clusters.new_cluster, name="admin-cluster-new"),
    path("admin/clusters/<int:cluster_id>", admin_clusters.cluster_detail, name="admin-cluster"),
    path(
        "admin/clusters/<int:cluster_id>/edit",
        admin_clusters.edit_cluster,
        name="admin-cluster-edit",
    ),
    path(
        "admin/clusters/<int:cluster_id>/serving",
        admin_serving.edit_serving,
        name="admin-cluster-serving",
    ),
    path(
        "admin/clusters/<int:cluster_id>/test",
        admin_clusters.test_cluster,
        name="admin-cluster-test",
    ),
    path(
        "admin/clusters/<int:cluster_id>/delete",
        admin_clusters.delete_cluster,
        name="admin-cluster-delete",
    ),
    path("admin/prices", admin_prices.price_page, name="admin-prices"),
    path("admin/prices.csv", admin_prices.export_prices, name="admin-prices-csv"),
    path("admin/prices/load", admin_prices.load_prices, name="admin-prices-load"),
    path("admin/prices/import", admin_prices.import_prices, name="admin-prices-import"),
    path("admin/prices/refresh", admin_prices.refresh_prices, name="admin-prices-refresh"),
    path("admin/prices/enter", admin_prices.enter_price, name="admin-price-enter"),
    path(
        "admin/prices/<int:price_id>/remove", admin_prices.remove_price, name="admin-price-remove"
    ),
    path(
        "admin/prices/of/<str:instance_type>",
        admin_prices.history_page,
        name="admin-price-history",
    ),
    path("admin/teams/<str:slug>/notifications", channels.team_channels_page, name="team-channels"),
    path("account/notifications", channels.person_channels_page, name="my-channels"),
    path("channels/<int:channel_id>", channels.change, name="channel-change"),
    path("channels/<int:channel_id>/test", channels.try_out, name="channel-try"),
    path("channels/<int:channel_id>/remove", channels.remove, name="channel-remove"),
    path("account/tokens", account.token_list, name="tokens"),
    path("account/tokens/<int:token_id>/revoke", account.revoke_token, name="token-revoke"),
    path("", include("deployments.approvals.web.urls")),
    path("", include("deployments.attestations.web.admin_signing")),
    path("", include("deployments.attestations.web.admin_roots")),
    path("", include("deployments.callers.web.admin_issuers")),
    path("", include("deployments.environments.web.urls")),
    path("", include("portal.dashboard.home_urls")),
    path("admin/teams/<str:slug>/delegates", delegates.name_delegate, name="admin-delegates"),
    path(
        "admin/teams/<str:slug>/delegates/<int:delegation_id>/end",
        delegates.end_delegation,
        name="admin-delegation-end",
    ),
]
