"""Installs a wheel in a new environment, as a user would, and runs the demo.

usage: try_wheel.py [--suites] WHEEL native|pure

The demo runs outside the source tree and without the development tools, first without the command-line extra and then
with it. `--suites` then runs the vectors on the installed wheel and, for a native wheel, also the comparison of both
backends. The script needs only the standard library. The new environment uses the Python that runs the script.
"""

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ("anyio", "hypothesis", "pytest", "pytest-benchmark", "pytest-timeout", "pytest-xdist")
VECTORS = ("test_vectors", "test_sse_vectors", "test_convert_vectors", "test_repair_vectors")
COMPARISON = ("test_twins", "test_twins_items")
PLACE = "import pathlib, streamweld; print(pathlib.Path(streamweld.__file__).resolve())"


def fail(message: str) -> None:
    raise SystemExit(f"try_wheel: {message}")


def modules(names: tuple[str, ...]) -> list[str]:
    """Return the paths of test modules anywhere below tests/."""
    found = [path for name in names for path in (ROOT / "tests").rglob(f"{name}.py") if path.parent.name != "history"]
    return [str(path) for path in found if path.parent.name != "requests"]


def pins() -> str:
    """Return the versions in the lock file, as constraints."""
    lines = (ROOT / ".ci" / "locks" / "test.txt").read_text(encoding="utf-8").splitlines()
    return "".join(line.removesuffix(" \\") + "\n" for line in lines if re.match(r"[A-Za-z0-9]", line))


def main(wheel: Path, backend: str, *, suites: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name).resolve()
        venv.create(home / "env", with_pip=True)
        scripts = home / "env" / ("Scripts" if os.name == "nt" else "bin")
        python, command = scripts / "python", scripts / "streamweld"
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
        environment |= {"STREAMWELD_BACKEND": backend, "PYTHONUTF8": "1"}

        def run(*arguments: str | Path, cwd: Path = home) -> subprocess.CompletedProcess[str]:
            line = [str(argument) for argument in arguments]
            return subprocess.run(
                line, cwd=cwd, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
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
        output_text = bare.stdout + bare.stderr
        if bare.returncode == 0 or "streamweld[cli]" not in output_text or "Traceback" in output_text:
            fail(f"without its extra the command line does not say what to install: {bare.returncode}\n{output_text}")
        must(*pip, "install", f"streamweld[cli] @ {wheel.as_uri()}")
        shown = must(command, "demo")
        print(shown)
        if not re.search(rf"\bbackend\s+{backend}\b", shown):
            fail(f"the demo does not name the {backend} backend")
        if suites:
            constraints = home / "constraints.txt"
            constraints.write_text(pins(), encoding="utf-8")
            must(*pip, "install", "--constraint", constraints, *TOOLS)
            del environment["STREAMWELD_BACKEND"]
            files = modules(VECTORS) + (modules(COMPARISON) if backend == "native" else ["--no-native"])
            # `tests` is imported from the root of the repository. The package is imported from the environment, because
            # the folder python/ is not on the path.
            done = run(python, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", *files, cwd=ROOT)
            if done.returncode:
                fail(f"the suites failed\n{done.stdout}{done.stderr}")
            print("\n".join(done.stdout.splitlines()[-4:]))


if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--suites"]
    if len(arguments) != 2 or arguments[1] not in ("native", "pure"):
        raise SystemExit(__doc__)
    main(Path(arguments[0]).resolve(), arguments[1], suites="--suites" in sys.argv)
