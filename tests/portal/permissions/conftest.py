from tests.portal.api.conftest import full_world, module_world

__all__ = ["full_world", "module_world"]
