from tests.portal.api.conftest import frame_once, full_world, module_world

__all__ = ["frame_once", "full_world", "module_world"]
