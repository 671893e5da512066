"""A version is a module that lists its decisions and a line of registration; flaws are departures from one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.mutants.source_mutants import COMMAND, PACKAGES, python
from support.paths import ROOT

from harness.model import departed
from kafka_proto.requests import TxnState
from kafka_proto.transactions.records import AddPartitionsToTxnRequest, SpecError, TxnMetadata
from kafka_proto.transactions.versions import DEPARTURES, DIARY_01, DIARY_02, GIST, REPAIRED

REGISTER = '    spec_model(REPAIRED, "diary 02 with S1, S2 and S3 repaired"),\n'
LINE = '    spec_model(LENIENT, "a toy"),\n'
IMPORT = "from kafka_proto.transactions.versions import DIARY_02, GIST, REPAIRED, Version\n"
SIZES = ("--size", "transactional-ids=1", "--size", "elections=0", "--size", "brokers=1")


@pytest.fixture
def with_toy(tmp_path: Path) -> Path:
    """A copy of the protocols with a module for a toy version and the line that registers it."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    transactions = tmp_path / "kafka_proto" / "transactions"
    shutil.copy(ROOT / "tests" / "data" / "toy_version.py", transactions / "lenient.py")
    models = (transactions / "models.py").read_text(encoding="utf-8")
    assert models.count(REGISTER) == models.count(IMPORT) == 1
    imports = IMPORT + "from kafka_proto.transactions.lenient import LENIENT\n"
    models = models.replace(REGISTER, REGISTER + LINE).replace(IMPORT, imports)
    (transactions / "models.py").write_text(models, encoding="utf-8")
    return tmp_path


def said(root: Path, *arguments: str) -> Any:
    return json.loads(python(root, "-c", COMMAND, root, *arguments, "--json"))


def test_new_version_is_a_module_and_a_line(with_toy: Path) -> None:
    """It is searched and simulated as the others: a zombie is never fenced."""
    models = {"lenient": "transactions/lenient", "repaired": "transactions/repaired"}
    checked = {name: said(with_toy, "check", model, *SIZES) for name, model in models.items()}
    assert all(one["complete"] and one["verdict"] == "ok" for one in checked.values()), checked
    fenced = {name: one["witnesses"]["ProducerFenced"] for name, one in checked.items()}
    assert fenced["repaired"] and not fenced["lenient"], fenced
    assert checked["lenient"]["distinct"] != checked["repaired"]["distinct"]
    runs = {name: said(with_toy, "simulate", model, "--seeds", "100", "--out", str(with_toy / "out"))
            for name, model in models.items()}
    assert runs["lenient"]["runs"] == runs["repaired"]["runs"] == 100
    assert [name for name, one in runs.items() if "ProducerFenced" in one["witnessed"]] == ["repaired"], runs


@pytest.mark.parametrize("repair", DEPARTURES, ids=lambda repair: repair.id)
def test_departure_replaces_decisions_of_some_version_and_no_other(repair: Any) -> None:
    """Each flaw is in a published spec, and is gone, with nothing else changed, where its repair is chosen."""
    flawed = [v for v in (DIARY_01, DIARY_02, GIST) if set(repair.instead) <= set(attrs.asdict(v, recurse=False))
              and not repair.is_in(v)]
    assert flawed
    for version in flawed:
        mended = departed(version, DEPARTURES, repair.id)
        assert repair.is_in(mended)
        changed = {name for name, decision in attrs.asdict(version, recurse=False).items()
                   if getattr(mended, name) != decision}
        assert changed == set(repair.instead)


def test_departure_of_another_version_is_refused() -> None:
    """What a version does not decide cannot be replaced there, and what is in no table cannot be asked for."""
    with pytest.raises(TypeError, match="others_pending"):
        departed(DIARY_02, DEPARTURES, "S6")
    with pytest.raises(KeyError, match="S9"):
        departed(DIARY_02, DEPARTURES, "S1,S9")


def test_version_decides_by_its_own_functions() -> None:
    """A broker or client asks its version; the toy's decision differs from diary 02's in the answer to one request."""
    metadata = TxnMetadata(1, 3, 2, TxnState.EMPTY, frozenset())
    request = AddPartitionsToTxnRequest("tid1", 1, 2, frozenset(("tp1",)), source="c1", dest="b1")
    answers = REPAIRED.add_partitions(request, leads=True, metadata=metadata, pending=None).answers
    assert [answer.code for answer in answers] == [SpecError.PRODUCER_FENCED]
