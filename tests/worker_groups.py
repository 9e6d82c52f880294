"""Which tests share a worker of xdist: those of a module, so that what they share is started once in a run."""

from __future__ import annotations

import pytest


# Before xdist writes the groups into the names of tests, by which it distributes them.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    """The modules with an MLflow server share it: its start takes as long as all of their tests."""
    return "mlflow" if "mlflow_registry" in getattr(item, "fixturenames", ()) else _module(item)


def _module(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]
