"""Removes the path of the build folder from the bill of materials of native wheels, in place.

usage: normalize_wheel.py WHEEL...

cargo-cyclonedx identifies path dependencies by their build path. Without the path, the same sources produce the same
bytes in any folder, and a published wheel does not reveal the directory layout of the build machine. The script needs
only the standard library.
"""

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

BUILD_FOLDER = re.compile(rb"path\+file://[^\"#]*?(?=/rust/(?:core|py)#)")
PLACEHOLDER = b"path+file:///streamweld"


def record_line(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def normalize(path: Path) -> int:
    """Rewrite the wheel; return the number of replaced paths."""
    with zipfile.ZipFile(path) as wheel:
        entries = [(info, wheel.read(info)) for info in wheel.infolist()]
    replaced = 0
    lines: dict[str, str] = {}
    for number, (info, data) in enumerate(entries):
        if "/sboms/" in info.filename:
            data, count = BUILD_FOLDER.subn(PLACEHOLDER, data)
            replaced += count
            entries[number] = (info, data)
            lines[info.filename] = record_line(info.filename, data)
    if not replaced:
        raise SystemExit(f"normalize_wheel: {path.name} names no build folder")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for info, data in entries:
            if info.filename.endswith(".dist-info/RECORD"):
                rows = data.decode().splitlines()
                data = "".join(f"{lines.get(row.split(',')[0], row)}\n" for row in rows).encode()
            written = zipfile.ZipInfo(info.filename, info.date_time)
            written.external_attr, written.compress_type = info.external_attr, zipfile.ZIP_DEFLATED
            wheel.writestr(written, data, compresslevel=9)
    return replaced


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    for wheel_path in map(Path, sys.argv[1:]):
        print(f"{wheel_path.name}: {normalize(wheel_path)} paths replaced")
