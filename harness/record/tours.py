"""A tour as a trail: its steps are a run's decisions, so it is replayed, shown and left like any other trail."""

from __future__ import annotations

from harness.model import Tour, find_model
from harness.record.choices import Chosen
from harness.record.trail import Trail

STRATEGY = "tour"
"""The strategy that the trail of a tour names."""


def tour_trail(tour: Tour) -> Trail:
    """Return the trail of a tour, of all its steps. Raises Refusal for an unknown model or size."""
    model = find_model(tour.model).make(tour.sizes, tour.settings, tour.network, tour.faults)
    choices = tuple(Chosen(label, None) for label, _ in tour.steps)
    return Trail(
        model.name, model.sizes, model.settings, model.network.name, model.faults, tour.claims, choices,
        strategy=STRATEGY, violates=tour.violates,
    )
