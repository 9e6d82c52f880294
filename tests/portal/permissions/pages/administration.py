"""Pages of teams, people, clusters and the fleet."""

from __future__ import annotations

from typing import Final

from tests.portal.permissions.matrix import ADMINS, EVERYONE, LEADS, MEMBERS, Row
from tests.portal.permissions.pages.requests import (
    CLUSTER,
    INVITED,
    LOAD_TESTS,
    OFFICE_HOURS,
    PERSON,
    POLICY,
    PRESETS,
    TEAM_PAGE,
    TEMPLATES,
    WHY,
    of_admins,
)

TEAMS: Final = (
    Row("GET admin", f"stranger {LEADS}"),
    of_admins("POST admin/dismissed", 303, body={"key": "deployment 1"}),
    of_admins("POST admin/dismissed/restore", 303, body={"key": "deployment 1"}),
    of_admins(
        "POST admin",
        302,
        body={"slug": "audio", "name": "A", "quota_gpus": "1", "monthly_budget_amount": "1"},
    ),
    Row(f"GET {TEAM_PAGE}", LEADS),
    Row(f"GET {TEAM_PAGE}/notifications", LEADS),
    Row(f"POST {TEAM_PAGE}/notifications", LEADS, ok=422),
    Row(f"POST {TEAM_PAGE}/invitations", LEADS, body=INVITED),
    of_admins("POST admin/invitations", body={**INVITED, "team": "vision"}),
    Row("POST admin/invitations/<int:invitation_id>/revoke", LEADS, ok=302),
    Row(
        f"POST {TEAM_PAGE}/members", LEADS, ok=302, body={"username": "stranger", "role": "viewer"}
    ),
    Row(f"POST {TEAM_PAGE}/members/<str:username>/remove", LEADS, ok=302),
    Row(
        f"POST {TEAM_PAGE}/limits",
        ADMINS,
        ok=302,
        body={"quota_gpus": "2", "monthly_budget_amount": "5"},
    ),
    Row(f"POST {TEAM_PAGE}/service-accounts", LEADS, body={"name": "deploy", "days": "90"}),
    Row(
        f"POST {TEAM_PAGE}/service-accounts/<str:account>/rotate",
        LEADS,
        body={"token_id": "service_token_id", "overlap_hours": "24"},
    ),
    Row(f"POST {TEAM_PAGE}/service-accounts/<str:account>/revoke", LEADS, ok=302),
    of_admins(f"GET {TEAM_PAGE}/delivery"),
    of_admins(f"POST {TEAM_PAGE}/delivery", 422),
    Row(f"POST {TEAM_PAGE}/delivery/test", ADMINS),
    Row(f"POST {TEAM_PAGE}/delegates", LEADS, ok=422),
    Row(f"POST {TEAM_PAGE}/delegates/<int:delegation_id>/end", LEADS, ok=302),
    Row("GET admin/teams/<slug:slug>/environments/<slug:environment>", LEADS),
    Row(
        "POST admin/teams/<slug:slug>/environments/<slug:environment>",
        LEADS,
        ok=422,
        body={"approvals": ""},
    ),
    Row("POST admin/teams/<slug:slug>/rollout-limit", LEADS, ok=302, body={"percent": "25"}),
    Row(
        f"POST {LOAD_TESTS}",
        LEADS,
        ok=302,
        body={"cluster": "", "cpu": "2", "memory": "8Gi", "minutes": "30"},
    ),
    Row(f"POST {PRESETS}/<int:preset_id>/remove", LEADS, ok=302),
    Row(f"POST {TEMPLATES}/<int:template_id>/remove", MEMBERS, ok=302),
    Row(f"POST {TEMPLATES}/edit", MEMBERS, ok=422, body={"name": "x"}),
    Row("POST channels/<int:channel_id>", LEADS, ok=302),
    Row("POST channels/<int:channel_id>/remove", LEADS, ok=302),
    Row("POST channels/<int:channel_id>/test", LEADS, ok=302),
)
PLATFORM: Final = (
    of_admins("GET admin/people"),
    of_admins(f"GET {PERSON}"),
    of_admins(f"POST {PERSON}/password-link"),
    of_admins(f"POST {PERSON}/second-factor/remove", 409),
    of_admins(f"POST {PERSON}/connect", 422),
    of_admins(f"POST {PERSON}/deactivate", 302),
    of_admins(f"POST {PERSON}/reactivate", 409),
    of_admins("GET admin/clusters"),
    of_admins("GET admin/clusters/new"),
    of_admins("POST admin/clusters/new", 422, body={"name": "x"}),
    of_admins(f"GET {CLUSTER}"),
    of_admins(f"GET {CLUSTER}/edit"),
    of_admins(f"POST {CLUSTER}/edit", 422, body={"name": "x"}),
    of_admins(f"GET {CLUSTER}/serving"),
    of_admins(f"POST {CLUSTER}/serving", 302, body={"x": "x"}),
    of_admins(f"POST {CLUSTER}/test"),
    *(
        Row(f"GET fleet/nodes/<int:node_id>/{form}", f"stranger {LEADS}")
        for form in ("drain", "cordon", "uncordon", "mig", "gpu-sharing")
    ),
    Row("POST fleet/nodes/<int:node_id>/cordon", f"stranger {LEADS}", ok=302, body=WHY),
    Row("POST fleet/nodes/<int:node_id>/uncordon", f"stranger {LEADS}", ok=409, body=WHY),
    Row("POST fleet/nodes/<int:node_id>/drain", f"stranger {LEADS}", ok=422, body=WHY),
    Row("POST fleet/nodes/<int:node_id>/mig", f"stranger {LEADS}", ok=422, body=WHY),
    Row("POST fleet/nodes/<int:node_id>/gpu-sharing", f"stranger {LEADS}", ok=422, body=WHY),
    *(
        row
        for new in ("pools/new", "node-classes/new")
        for row in (
            Row(f"GET fleet/clusters/<int:cluster_id>/{new}", f"stranger {LEADS}"),
            Row(
                f"POST fleet/clusters/<int:cluster_id>/{new}",
                f"stranger {LEADS}",
                ok=422,
                body=WHY,
            ),
        )
    ),
    # There is none of this name.
    *(
        Row(
            f"{method} fleet/clusters/<int:cluster_id>/{address}",
            f"stranger {LEADS}",
            ok=404,
            body=WHY if method == "POST" else {},
        )
        for method in ("GET", "POST")
        for address in (
            "pools/of/<slug:name>",
            "node-groups/<str:name>",
            "node-classes/of/<str:name>",
        )
    ),
    Row(f"GET {OFFICE_HOURS}", EVERYONE, named={"kind": "node-pool", "name": "none"}),
    Row(
        f"POST {OFFICE_HOURS}",
        f"stranger {LEADS}",
        ok=422,
        body=WHY,
        named={"kind": "node-pool", "name": "none"},
    ),
    # The lead requested it.
    Row(
        "POST fleet/actions/<int:action_id>",
        LEADS,
        ok=302,
        body={"decision": "withdraw"},
        # Refused on the page itself.
        others=dict.fromkeys(["stranger", "viewer", "member", "delegate"], 403),
    ),
    of_admins("GET admin/prices"),
    of_admins("POST admin/prices/load", 302),
    of_admins("GET admin/prices.csv"),
    of_admins("POST admin/prices/import", 422),
    of_admins("POST admin/prices/refresh", 302),
    of_admins("GET admin/prices/enter"),
    of_admins("POST admin/prices/enter", 422, body={"region": "x"}),
    of_admins("GET admin/prices/of/<str:instance_type>", named={"instance_type": "g5.xlarge"}),
    of_admins("POST admin/prices/<int:price_id>/remove", 404, named={"price_id": 0}),
    of_admins("GET admin/environments/<slug:environment>"),
    of_admins("POST admin/environments/<slug:environment>", 422, body={"approvals": ""}),
    of_admins("GET admin/provisioning"),
    of_admins("POST admin/provisioning", 422, body={"provider": "x"}),
    of_admins("POST admin/provisioning/<int:token_id>/revoke", 404),
    of_admins("GET admin/policy"),
    of_admins("POST admin/policy", 422, body={"name": ""}),
    of_admins(f"GET {POLICY}"),
    of_admins(f"POST {POLICY}", 422, body={"name": ""}),
    of_admins(f"POST {POLICY}/switch", 302),
    of_admins(f"POST {POLICY}/delete", 302),
    of_admins("GET admin/token-issuers"),
    of_admins("POST admin/token-issuers", 422, body={"name": ""}),
    of_admins("POST admin/token-issuers/<int:token_issuer_id>/remove", 302),
    of_admins("GET admin/signing"),
    of_admins("GET ui/"),
    of_admins("POST admin/signing/signers", 422, body={"name": ""}),
    of_admins("GET admin/signing/signers/<int:signer_id>/remove"),
    of_admins("POST admin/signing/signers/<int:signer_id>/remove", 302),
    of_admins("POST admin/signing/identities", 422, body={"name": ""}),
    of_admins("POST admin/signing/roots", 422, body={"name": ""}),
    of_admins("GET admin/signing/roots/<int:root_id>"),
    of_admins("POST admin/signing/roots/<int:root_id>", 422, body={"document": ""}),
    of_admins("GET admin/signing/roots/<int:root_id>/remove"),
    of_admins("POST admin/signing/roots/<int:root_id>/remove", 302),
    of_admins("POST admin/signing/rules", 422, body={"name": ""}),
    of_admins("POST admin/signing/rules/<int:signing_rule_id>/delete", 302),
    of_admins(f"POST {CLUSTER}/delete", 302),
)
