"""Stages the core crate as it would be published, and runs `cargo publish --dry-run` on the result.

usage: core_crate.py

The crate reads the tables that both backends share from python/streamweld/_spec. These tables are outside the crate's
folder, so cargo would not include them. Therefore, the staged package has the layout of the repository: it contains the
crate and the tables at their original paths. Manifest values that the crate inherits from the workspace are replaced
with the values themselves. The Rust examples in rust/core/README.md are compiled and run as examples of the staged
package. This script needs only the standard library, cargo and git.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = Path("rust/core")
SPEC = Path("python/streamweld/_spec")
README = CORE / "README.md"


def tracked(*paths: Path) -> list[Path]:
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--", *map(str, paths)], check=True, capture_output=True, text=True
    ).stdout
    return [Path(name) for name in listed.split("\0") if name]


def manifest(examples: list[tuple[str, str]]) -> str:
    """Return the Cargo.toml for the staged package."""
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    crate = tomllib.loads((ROOT / CORE / "Cargo.toml").read_text(encoding="utf-8"))
    shared = workspace["package"]
    lines = [
        "[package]",
        *(f'{key} = "{shared[key]}"' for key in ("version", "edition", "rust-version", "license")),
        f'name = "{crate["package"]["name"]}"',
        f'description = "{crate["package"]["description"]}"',
        f'readme = "{README}"',
        'repository = "https://github.com/streamweld/streamweld"',
        'keywords = ["llm", "sse", "streaming", "parser", "openai"]',
        'categories = ["parser-implementations", "encoding"]',
        "autoexamples = false",
        "autotests = false",
        "autobenches = false",
        "[workspace]",
        "[lib]",
        f'path = "{CORE}/src/lib.rs"',
        "[dependencies]",
    ]
    for name in crate["dependencies"]:
        wanted = workspace["dependencies"][name]
        wanted = {"version": wanted} if isinstance(wanted, str) else wanted
        features = ", ".join(f'"{feature}"' for feature in wanted.get("features", []))
        lines.append(f'{name} = {{ version = "{wanted["version"]}", features = [{features}] }}')
    for name, path in examples:
        lines += ["[[example]]", f'name = "{name}"', f'path = "{path}"']
    return "\n".join(lines) + "\n"


def main() -> int:
    blocks = re.findall(r"```rust\n(.*?)```", (ROOT / README).read_text(encoding="utf-8"), re.DOTALL)
    if not blocks:
        raise SystemExit(f"core_crate: {README} has no Rust example")
    with tempfile.TemporaryDirectory() as name:
        stage = Path(name)
        facts = [path for path in tracked(SPEC) if path.suffix == ".json"]
        sources = tracked(CORE / "src", CORE / "examples", README, Path("LICENSE"))
        for path in sources + facts:
            (stage / path.parent).mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, stage / path)
        examples = [(path.stem, str(path)) for path in sources if path.parent == CORE / "examples"]
        for number, block in enumerate(blocks, 1):
            path = CORE / "examples" / f"readme_{number}.rs"
            (stage / path).write_text(block, encoding="utf-8")
            examples.append((path.stem, str(path)))
        (stage / "Cargo.toml").write_text(manifest(examples), encoding="utf-8")
        shutil.copyfile(ROOT / "Cargo.lock", stage / "Cargo.lock")
        target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target" / "core-crate"))
        environment = {**os.environ, "CARGO_TARGET_DIR": target}

        def cargo(*arguments: str) -> None:
            subprocess.run(["cargo", *arguments], cwd=stage, env=environment, check=True)

        for number in range(1, len(blocks) + 1):
            cargo("run", "--quiet", "--example", f"readme_{number}")
        cargo("package", "--allow-dirty", "--list")
        cargo("publish", "--dry-run", "--allow-dirty", "--quiet")
        # The path of the file that a dry run creates differs between cargo versions.
        packed = max(Path(target, "package").rglob("*.crate"), key=lambda path: path.stat().st_mtime)
        print(f"{packed.name}: {packed.stat().st_size} bytes, {len(examples)} examples, {len(facts)} tables")
    return 0


if __name__ == "__main__":
    sys.exit(main())
