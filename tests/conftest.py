"""How hypothesis runs here: the same examples every time, and no deadline, which a busy machine would miss."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "project", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=False
)
settings.load_profile("project")
