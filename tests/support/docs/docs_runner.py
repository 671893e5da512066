"""Runs the blocks of a page as its reader would: in order, in one folder, through the real command line.

`make` is not run: its target is looked up. In a folder where the page has installed a package of its own, commands are
processes; elsewhere `kafka-proto` is called in this process, which says the same and is faster.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

import attrs

from support.commands.command_line import code_of
from support.docs.docs_blocks import (
    ROOT,
    Answer,
    Block,
    Command,
    DocsError,
    agrees,
    blocks,
    commands,
    difference,
    printed,
    update,
)

PATIENCE_S = 600
WIDTH = "80"
BIN = Path(sys.executable).parent
IN_THE_PROJECT = ("docs", "benchmarks", "tests")
"""What a page that is read in the project's folder finds there; a guide has its own folder and nothing else."""
GUIDES = ("bring-your-logs.md", "test-a-client.md", "try-a-protocol-change.md")
EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("formats.md", "$ java -cp tla2tools.jar tlc2.TLC -config ReusedId.cfg ReusedId"): "needs TLC, which is not ours",
    ("campaigns.md", "$ docker compose --file docker/compose.yaml up --build --abort-on-container-exit campaign"):
        "needs a Docker daemon; tests/project/test_docker.py holds the file",
}
"""Blocks that no test runs, by page and first line, with the reason."""
RAN, LATER, LEFT_OUT = "ran", "only with make test-large", "left out"


def guide(page: Path) -> bool:
    """Return whether a page is followed in an empty folder, with the wheel alone."""
    return page.name in GUIDES


@attrs.define
class Runner:
    """One reading of a page. With `installed`, the folder of an environment's commands, nothing is stood in for."""

    page: Path
    folder: Path
    large: bool = False
    installed: Path | None = None
    package: bool = False
    """Whether the page has installed a package of its own."""

    def __attrs_post_init__(self) -> None:
        if not guide(self.page) and not self.installed:
            for name in IN_THE_PROJECT:
                (self.folder / name).symlink_to(ROOT / name)

    def run(self, block: Block) -> str:
        """Run a block and hold it against what it shows; returns what was done. Raises DocsError."""
        if (self.page.name, block.name) in EXCEPTIONS:
            return LEFT_OUT
        if "large" in block.marks and not self.large:
            return LATER
        if "file" in block.marks:
            (self.folder / block.marks["file"]).write_text(block.text, encoding="utf-8")
        elif "shows" in block.marks:
            (answer,) = self._answers(block)
            self._hold(block, answer.command.text, block.lines, answer.output)
        elif "from" in block.marks:
            if block.text not in (self.page.parent / block.marks["from"]).read_text(encoding="utf-8"):
                raise DocsError(f"{block.place}: this does not stand in {block.marks['from']}")
        elif block.language == "python":
            code, output = self._process([sys.executable if not self.installed else self.installed / "python",
                                          "-c", block.text])
            self._hold(block, "the program", printed(block), output, (0, code))
        elif block.language == "console":
            for command in commands(block):
                code, output = self.execute(command)
                shown = command.shown or output
                self._hold(block, command.text, shown, output, (command.code, code), "figures" in block.marks)
        return RAN

    def update(self) -> None:
        """Write the page anew."""
        update(self.page, self._answers, self._to_renew())

    def _answers(self, block: Block) -> list[Answer]:
        if "shows" in block.marks:
            lines = (self.folder / block.marks["shows"]).read_text(encoding="utf-8").splitlines()
            return [Answer(Command(block.marks["shows"], 0, 0, block.lines, 0), 0, lines)]
        return [Answer(command, *self.execute(command)) for command in commands(block)]

    def _to_renew(self) -> Iterator[Block]:
        """Run all other blocks on the way, and yield those that show what something says."""
        for block in blocks(self.page):
            left_out = (self.page.name, block.name) in EXCEPTIONS or ("large" in block.marks and not self.large)
            if not left_out and (block.language == "console" or "shows" in block.marks):
                yield block
                continue
            try:
                self.run(block)
            except DocsError as error:
                print(error, file=sys.stderr)

    def _hold(self, block: Block, what: str, shown: object, found: object, codes: tuple[int, int] = (0, 0),
              figures: bool = False) -> None:
        assert isinstance(shown, list | tuple) and isinstance(found, list)
        if codes[0] != codes[1]:
            said = "\n".join(found)
            raise DocsError(f"{block.place}: {what}\nexit code {codes[1]}, the page says {codes[0]}\n{said}")
        if not agrees(shown, found, figures):
            raise DocsError(f"{block.place}: {what}\n{difference(shown, found)}")

    def execute(self, command: Command) -> tuple[int, list[str]]:
        """Return the exit code and the lines of a command, those of both streams."""
        words = shlex.split(command.text, comments=True)
        if words[0] == "make":
            check_target(words[1])
            return command.code, list(command.shown)
        if words[:2] == ["pip", "install"] and not self.installed:
            self._install(words[2:])
            return 0, []
        if words[:2] in (["kafka-proto", "demo"], ["kafka-proto", "serve"]) and "--terminal" not in words:
            return self._serve([self._bin / "kafka-proto", *words[1:], "--port", "0"])
        if re.search(r"[|<>;&]", re.sub(r"'[^']*'", "", command.text)) or words[0] != "kafka-proto":
            return self._process(["bash", "-c", command.text])
        if self.package or self.installed or words[1] == "campaign":
            return self._process([self._bin / "kafka-proto", *words[1:]])
        return self._call(words)

    @property
    def _bin(self) -> Path:
        return self.installed or BIN

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
        found = {**kept, "COLUMNS": WIDTH, "NO_COLOR": "1", "PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}"}
        if self.package:
            found["PYTHONPATH"] = str(self.folder)
        return found

    def _process(self, words: list[object]) -> tuple[int, list[str]]:
        done = subprocess.run([str(word) for word in words], cwd=self.folder, env=self._environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              timeout=PATIENCE_S, check=False)
        return done.returncode, self._lines(done.stdout)

    def _serve(self, words: list[object]) -> tuple[int, list[str]]:
        """Start a server, interrupt it once it has said where it is, and return what it came to."""
        with subprocess.Popen([str(word) for word in words], cwd=self.folder, env=self._environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as server:
            try:
                assert server.stdout is not None
                first = server.stdout.readline()
                server.send_signal(signal.SIGINT)
                rest, _ = server.communicate(timeout=PATIENCE_S)
            finally:
                server.kill()
        return server.returncode, self._lines(first + rest)

    def _call(self, words: list[str]) -> tuple[int, list[str]]:
        """Call the command line in this process."""
        out = io.StringIO()
        with patch.dict(os.environ, {"COLUMNS": WIDTH, "NO_COLOR": "1"}), chdir(self.folder):
            code = code_of(words, out, out)
        return code, self._lines(out.getvalue())

    def _lines(self, text: str) -> list[str]:
        lines = [line.rstrip() for line in text.replace(str(self.folder), "FOLDER").splitlines()]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def _install(self, words: list[str]) -> None:
        """Do what an editable install of the folder does, without a package index; extras are installed already."""
        if words in (["-e", "."], ["--editable", "."]):
            project = tomllib.loads((self.folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            about = self.folder / f"{project['name'].replace('-', '_')}.egg-info"
            about.mkdir(exist_ok=True)
            head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
            (about / "PKG-INFO").write_text(head, encoding="utf-8")
            groups = project["entry-points"]
            text = "".join(f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in rows.items())
                           for group, rows in groups.items())
            (about / "entry_points.txt").write_text(text, encoding="utf-8")
            self.package = True
        elif not all(re.fullmatch(r"kafka-proto(\[[a-z,]+\])?|pytest", word) for word in words):
            raise DocsError(f"{self.page.name}: no stand-in for pip install {' '.join(words)}")


def check_target(target: str) -> None:
    """Refuse a target of make that there is not. Raises DocsError."""
    targets = re.search(r"TARGETS := (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert targets is not None
    if target not in targets[1].split():
        raise DocsError(f"make has no target {target}; its targets are {targets[1]}")


def follow(page: Path, folder: Path, large: bool = False, installed: Path | None = None) -> dict[str, str]:
    """Run a whole page; returns what was done with each block, by its place. Raises DocsError with all that fails."""
    runner = Runner(page, folder, large, installed)
    done: dict[str, str] = {}
    wrong: list[str] = []
    for block in blocks(page):
        try:
            done[block.place] = runner.run(block)
        except DocsError as error:
            wrong.append(str(error))
    if wrong:
        renew = f"python tests/support/docs/docs_blocks.py --update{' --large' if large else ''} {page.name}"
        raise DocsError("\n\n".join([*wrong, f"where the page is out of date: {renew}"]))
    return done
