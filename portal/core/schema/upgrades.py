"""Operations that lead the database of a release to the tables that a fresh migration creates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.migrations import Migration
from django.db.migrations.operations import AddConstraint, AddField, AddIndex, AlterField
from django.db.models import Field

from portal.core.schema.operations import CreateModels


class FreshTables:
    """The tables of a fresh migration, which consists of one CreateModels. What an upgrade adds is taken from it, so
    that both ways end in the same tables.
    """

    def __init__(self, fresh: type[Migration]) -> None:
        self._models = {
            model.name: model
            for operation in fresh.operations
            if isinstance(operation, CreateModels)
            for model in operation.operations
        }

    def create(self, *names: str) -> CreateModels:
        return CreateModels([self._models[name] for name in names])

    def add_fields(self, model: str, *names: str) -> Sequence[AddField]:
        return [AddField(model, name, self.field(model, name)) for name in names]

    def alter_fields(self, model: str, *names: str) -> Sequence[AlterField]:
        return [AlterField(model, name, self.field(model, name)) for name in names]

    def field(self, model: str, name: str) -> Field[Any, Any]:
        field: Field[Any, Any] = dict(self._models[model].fields)[name].clone()
        return field

    def add_indexes(self, model: str, *names: str) -> Sequence[AddIndex]:
        indexes = {index.name: index for index in self._models[model].options["indexes"]}
        return [AddIndex(model, indexes[name]) for name in names]

    def add_constraints(self, model: str, *names: str) -> Sequence[AddConstraint]:
        constraints = {one.name: one for one in self._models[model].options["constraints"]}
        return [AddConstraint(model, constraints[name]) for name in names]
