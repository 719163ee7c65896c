"""Derives the py3-none-any wheel from a finished native wheel: the same Python files without the extension module.

usage: pure_wheel.py NATIVE_WHEEL OUT_DIR     (prints the path of the new wheel)

The pure backend does not need the extension, so a second build is unnecessary and could only introduce differences. The
script needs only the standard library. It relies on the wheel format and on the name of the extension module.
"""

import base64
import hashlib
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath

EXTENSION_SUFFIXES = {".so", ".pyd", ".dylib"}
TAG = "py3-none-any"


def is_native(name: str) -> bool:
    """Return True for the extension and its bill of materials, which a pure wheel omits.

    `_native.pyi` stays in the pure wheel, because the types are the same.
    """
    path = PurePosixPath(name)
    return (path.name.startswith("_native.") and path.suffix in EXTENSION_SUFFIXES) or "sboms" in path.parts


def pure_wheel_file(text: str) -> str:
    """Return the WHEEL file for the derived wheel; reject a source that is not a native wheel."""
    fields = HeaderParser().parsestr(text)
    if fields["Root-Is-Purelib"] != "false":
        raise SystemExit("pure_wheel: the source is no native wheel")
    kept = [(key, value) for key, value in fields.items() if key not in ("Root-Is-Purelib", "Tag", "Build")]
    return "".join(f"{key}: {value}\n" for key, value in [*kept, ("Root-Is-Purelib", "true"), ("Tag", TAG)])


def record_line(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def derive(source: Path, out_dir: Path) -> Path:
    distribution, version = source.name.split("-")[:2]
    out_dir.mkdir(parents=True, exist_ok=True)
    target = out_dir / f"{distribution}-{version}-{TAG}.whl"
    record_name = f"{distribution}-{version}.dist-info/RECORD"
    record = ""
    dropped = 0
    with zipfile.ZipFile(source) as native, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as pure:

        def write(entry: zipfile.ZipInfo, data: bytes) -> None:
            # Keep the time and mode of each file, so that equal native wheels produce equal pure wheels.
            info = zipfile.ZipInfo(entry.filename, entry.date_time)
            info.external_attr = entry.external_attr
            info.compress_type = zipfile.ZIP_DEFLATED
            pure.writestr(info, data)

        for entry in native.infolist():
            name = entry.filename
            if name == record_name or entry.is_dir():
                continue
            if is_native(name):
                dropped += PurePosixPath(name).suffix in EXTENSION_SUFFIXES
                continue
            data = native.read(entry)
            if name == f"{distribution}-{version}.dist-info/WHEEL":
                data = pure_wheel_file(data.decode()).encode()
            write(entry, data)
            record += record_line(name, data)
        if dropped != 1:
            raise SystemExit(f"pure_wheel: {source.name} holds {dropped} extension modules, not one")
        write(native.getinfo(record_name), (record + f"{record_name},,\n").encode())
    return target


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    print(derive(Path(sys.argv[1]), Path(sys.argv[2])))
