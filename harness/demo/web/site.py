"""The demo as a site without a server: a page, and Python with the models, which a worker of the page runs.

    python -m harness.demo.web.site PARTS SITE

PARTS is a folder with what is to be packed: Pyodide, as its package for Node is fetched, and the wheels of this project
and of what it needs. `make site` puts them there. The site is two files; it can be put anywhere, and opened from a
folder, too.
"""

from __future__ import annotations

import base64
import json
import sys
import tarfile
from pathlib import Path

from harness.demo.session.recording import recorded_tour
from harness.demo.web.one_file import STATIC, packed, page
from harness.model import Refusal, find_tour

RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
FIRST = "commit"
"""The tour that is shown first."""
POLICY = ("default-src 'none'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval' data: blob:; worker-src data:; "
          "connect-src blob:; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'")
"""What the page may load: what is in it, its worker, and the script next to it."""
NAME = "runtime.js"
WORKER = STATIC.parent / "worker.js"


def write_site(parts: Path, site: Path) -> None:
    """Write the site of some parts into a folder. Raises Refusal if one is missing."""
    pyodide, wheels = sorted(parts.glob("pyodide-*.tgz")), sorted(parts.glob("*.whl"))
    if not pyodide or not wheels:
        raise Refusal(f"{parts} has no {'wheel' if pyodide else 'Pyodide'}; make site puts all that is needed there")
    with tarfile.open(pyodide[-1]) as archive:
        files = {name: _member(archive, f"package/{name}") for name in RUNTIME}
    files.update((path.name, path.read_bytes()) for path in wheels)
    site.mkdir(parents=True, exist_ok=True)
    runtime = {name: packed(content) for name, content in files.items()}
    (site / NAME).write_text(f"globalThis.runtime = {json.dumps(runtime)};\n", encoding="utf-8")
    worker = base64.b64encode(WORKER.read_bytes()).decode()
    recording = packed(recorded_tour(find_tour(FIRST)).encode())
    text = page("worker", "kafka-proto", {"worker": worker, "recording": recording}, POLICY,
                {"runtime": NAME, "what": FIRST})
    (site / "index.html").write_text(text, encoding="utf-8")


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    found = archive.extractfile(name)
    assert found is not None, f"{name} is a file"
    return found.read()


if __name__ == "__main__":
    try:
        write_site(*map(Path, sys.argv[1:3]))
    except Refusal as error:
        print(error, file=sys.stderr)
        sys.exit(2)
