"""Factories of people and teams that every test uses."""

from __future__ import annotations

import factory

from portal.accounts.models import Membership, Role, Team, User
from portal.core import clock


class UserFactory(factory.django.DjangoModelFactory[User]):
    class Meta:
        model = User

    username = factory.Sequence(lambda n: f"person{n}")


class TeamFactory(factory.django.DjangoModelFactory[Team]):
    class Meta:
        model = Team

    slug = factory.Sequence(lambda n: f"team{n}")
    name = factory.LazyAttribute(lambda team: team.slug.title())
    quota_gpus = 4
    monthly_budget_amount = "1000.00"
    created_at = factory.LazyFunction(clock.now)


class MembershipFactory(factory.django.DjangoModelFactory[Membership]):
    class Meta:
        model = Membership

    user = factory.SubFactory(UserFactory)
    team = factory.SubFactory(TeamFactory)
    role = Role.MEMBER
