"""Diary 02 with its flaws repaired: what coordinators of whole transactions are held against."""

from __future__ import annotations

import attrs

from harness.model import departed
from kafka_proto.transactions.versions.departures import DEPARTURES
from kafka_proto.transactions.versions.diary_02 import DIARY_02

REPAIRED = attrs.evolve(departed(DIARY_02, DEPARTURES, "S1,S2,S3"), name="repaired")
