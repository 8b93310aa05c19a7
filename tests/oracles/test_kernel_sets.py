"""The kernels of every instruction set: which results are the same bit for bit, and that they are vectors."""

import os
import platform
import re
import shutil
import subprocess
import sys

import kernel_results
import numpy as np
import pytest

from structsvm import instruction_set
from structsvm.execution._processor import SETS, VARIABLE, available
from structsvm.kernel import _kernels


def run(name, *arguments):
    return subprocess.run(
        [sys.executable, *arguments], env=os.environ | {VARIABLE: name}, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    found, folder = {}, tmp_path_factory.mktemp("sets")
    for name in available():
        done = run(name, kernel_results.__file__, str(folder / f"{name}.npz"))
        assert (done.returncode, done.stdout.strip()) == (0, name), done.stderr
        found[name] = dict(np.load(folder / f"{name}.npz"))
    return found


def test_the_set_in_use():
    assert available()[0] == "baseline"
    assert instruction_set() == (os.environ.get(VARIABLE) or available()[-1])
    done = run("", "-P", "-c", "import structsvm; print(structsvm.instruction_set())")
    assert done.stdout.strip() == available()[-1]


@pytest.mark.parametrize("name", ["neon", "AVX2", *sorted(set(SETS) - set(available()))])
def test_sets_that_the_processor_has_not_are_refused(name):
    done = run(name, "-P", "-c", "from structsvm.oracles import _viterbi")
    assert done.returncode != 0
    assert f"ImportError: STRUCTSVM_KERNELS must be one of {', '.join(available())}" in done.stderr
    assert done.stderr.strip().endswith(f"got {name!r}")


def test_results_of_the_sets(results):
    """Sums and maxima are the same bit for bit; products differ by rounding."""
    first = results["baseline"]
    assert sum(name.startswith(kernel_results.ROUNDED) for name in first) < len(first) - 20
    for other in results.values():
        assert other.keys() == first.keys()
        for name, expected in first.items():
            assert np.isfinite(expected).all()
            if not name.startswith(kernel_results.ROUNDED):
                np.testing.assert_array_equal(other[name], expected, err_msg=name)
            elif not name.endswith("labels"):
                scale = np.abs(expected).max()
                np.testing.assert_allclose(other[name] / scale, expected / scale, rtol=0, atol=1e-5, err_msg=name)


# Instructions on whole registers that the kernels must have: maxima of single precision and of double, products with a
# sum. They are six tenths of those that gcc 12 writes, and there is hardly any maximum of single numbers: a structure
# whose loops are no vectors lacks more.
PACKED = {
    "maxps .*xmm": 85,
    "vmaxps.*ymm": 120,
    "vmaxps.*zmm": 10,
    "maxpd .*xmm": 85,
    "vmaxpd.*ymm": 115,
    "vfmadd.*ps.*ymm": 325,
    "vfmadd.*ps.*zmm": 130,
    "vfmadd.*pd.*ymm": 280,
    "divps .*xmm": 2,
    "vdivps.*ymm": 12,
}


@pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("objdump"), reason="needs x86-64 and objdump")
def test_kernels_are_vectors():
    command = ["objdump", "-d", "--no-show-raw-insn", _kernels.__file__]
    code = subprocess.run(command, capture_output=True, text=True, check=True)
    # A few of a million: those that are counted below.
    instructions = re.findall(r"\t(v?(?:max|fmadd|div)\w+ .*)", code.stdout)
    for pattern, least in PACKED.items():
        assert sum(bool(re.match(pattern, one)) for one in instructions) >= least, pattern
    packed, single = (sum(bool(re.match(f"v?max{kind}[sd] ", one)) for one in instructions) for kind in "ps")
    assert single <= packed  # alignments have maxima of single numbers at their edges
