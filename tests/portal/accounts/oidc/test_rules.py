"""Claims and rules to roles."""

from __future__ import annotations

import pytest

from portal.accounts.oidc import rules
from portal.accounts.oidc.rules import BadRule, ClaimsIncomplete, Grant


def grant(text: str, **claims: object) -> Grant:
    return rules.grant(rules.parse(text), claims)


def test_a_group_gives_a_role_in_a_team() -> None:
    granted = grant("groups=ml-leads -> vision lead", groups=["staff", "ml-leads"])

    assert granted == Grant(roles={"vision": "lead"})


def test_without_the_claim_nothing_is_given() -> None:
    text = "groups=ml -> vision lead\nrealm_access.roles=admin -> platform-admin"

    assert grant(text) == Grant()
    assert grant(text, groups=None, realm_access="admin") == Grant()
    assert grant(text, groups={"ml": True}, realm_access=["roles"]) == Grant()
    assert grant(text, groups=["mlx", "xml", "ML", 7]) == Grant()


def test_the_highest_role_of_a_team_counts_whatever_the_order() -> None:
    text = "groups=a -> vision viewer\ngroups=b -> vision lead\ngroups=c -> vision member"

    assert grant(text, groups=["b", "a", "c"]).roles == {"vision": "lead"}
    assert grant(text, groups=["c", "a"]).roles == {"vision": "member"}


def test_placeholders_take_teams_and_roles_from_the_value() -> None:
    text = "groups=slipway-{team}-{role} -> {team} {role}"

    granted = grant(
        text,
        groups=[
            "slipway-vision-lead",
            "slipway-a-b-viewer",
            "slipway-Vision-lead",
            "slipway-x-boss",
        ],
    )

    assert granted.roles == {"vision": "lead", "a-b": "viewer"}


def test_a_value_is_no_pattern() -> None:
    assert grant("groups=a.c -> vision lead", groups=["abc"]) == Grant()
    assert grant("groups=.* -> vision lead", groups=["abc"]) == Grant()
    assert grant("groups=ml -> vision lead", groups=["ml\n"]) == Grant()


def test_a_text_is_one_value_and_a_flag_is_true_or_false() -> None:
    text = "role=ml lead -> vision lead\nis_admin=true -> platform-admin"

    assert grant(text, role="ml lead", is_admin=True) == Grant({"vision": "lead"}, True)
    assert grant(text, role="ml", is_admin=False) == Grant()


def test_a_name_with_dots_is_a_path_unless_a_claim_has_that_name() -> None:
    text = "realm_access.roles=ml -> vision lead\nhttps://acme.com/groups=ml -> audio lead"

    granted = grant(text, realm_access={"roles": ["ml"]}, **{"https://acme.com/groups": ["ml"]})

    assert granted.roles == {"vision": "lead", "audio": "lead"}


@pytest.mark.parametrize(
    "claims",
    [
        {"_claim_names": {"groups": "src1"}},
        {"hasgroups": True},
        {"groups": ["x"] * 5_001},
    ],
)
def test_groups_that_were_left_out_are_not_groups_that_are_gone(claims: dict[str, object]) -> None:
    with pytest.raises(ClaimsIncomplete):
        grant("groups=ml -> vision lead", **claims)


@pytest.mark.parametrize(
    "text",
    [
        "groups= -> vision lead",
        "groups=ml vision lead",
        "groups=ml -> vision",
        "groups=ml -> vision boss",
        "groups=ml -> Vision lead",
        "groups=ml -> {team} lead",
        "groups=ml-{team} -> vision lead",
        "groups={team}-{team} -> {team} lead",
        "groups=ml-{team} -> platform-admin",
    ],
)
def test_a_rule_that_cannot_be_read_is_quoted(text: str) -> None:
    with pytest.raises(BadRule, match="groups="):
        rules.parse(text)


def test_comments_and_empty_lines_are_no_rules() -> None:
    assert rules.parse("# who leads\n\n  \n") == ()
