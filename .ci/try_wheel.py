"""Installs a wheel the way a user would, in an environment of its own, and runs the demo from it.

usage: try_wheel.py WHEEL native|pure

Away from the source tree, with none of the development tools; first without and then with the command-line extra.
Standard library only; the environment is made with the Python that runs this.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PLACE = "import pathlib, streamweld; print(pathlib.Path(streamweld.__file__).resolve())"


def fail(message: str) -> None:
    raise SystemExit(f"try_wheel: {message}")


def main(wheel: Path, backend: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name).resolve()
        venv.create(home / "env", with_pip=True)
        scripts = home / "env" / ("Scripts" if os.name == "nt" else "bin")
        python, command = scripts / "python", scripts / "streamweld"
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        environment |= {"STREAMWELD_BACKEND": backend, "PYTHONUTF8": "1"}

        def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
            line = [str(argument) for argument in arguments]
            return subprocess.run(
                line, cwd=home, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
            )

        def must(*arguments: str | Path) -> str:
            done = run(*arguments)
            if done.returncode:
                fail(f"{' '.join(map(str, arguments))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
            return done.stdout

        pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
        must(*pip, "install", wheel)
        must(*pip, "check")
        place = must(python, "-c", PLACE).strip()
        if home not in Path(place).parents:
            fail(f"streamweld was imported from {place}")
        bare = run(command, "demo")
        said = bare.stdout + bare.stderr
        if bare.returncode == 0 or "streamweld[cli]" not in said or "Traceback" in said:
            fail(f"without its extra the command line does not say what to install: {bare.returncode}\n{said}")
        must(*pip, "install", f"streamweld[cli] @ {wheel.as_uri()}")
        shown = must(command, "demo")
        print(shown)
        if not re.search(rf"\bbackend\s+{backend}\b", shown):
            fail(f"the demo does not name the {backend} backend")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[2] not in ("native", "pure"):
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]).resolve(), sys.argv[2])
