"""The kernels of every instruction set: which results are the same bit for bit, and that they are vectors."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import kernel_results
import numpy as np
import pytest

from structsvm import instruction_set
from structsvm.execution._processor import SETS, VARIABLE, available
from structsvm.kernel import _kernels
from structsvm.linear import _gradient_descent
from structsvm.oracles import _ambiguous, _cky, _smith_waterman, _taxonomy, _viterbi


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


# Instructions on whole registers that the kernels of each module must have: maxima of single precision and of double,
# products with a sum. One for each place in the source at least, and hardly any maximum of single numbers.
PACKED = {
    _viterbi: {"vmaxps.*ymm": 24, "maxps .*xmm": 48, "vfmadd.*ps.*ymm": 48},
    _taxonomy: {"vmaxps.*ymm": 1, "maxps .*xmm": 2, "vfmadd.*ps.*ymm": 12},
    _ambiguous: {"vfmadd.*pd.*ymm": 6},
    _smith_waterman: {"vmaxpd.*ymm": 16, "maxpd .*xmm": 16},
    _cky: {"vmaxpd.*ymm": 1, "maxpd .*xmm": 2},
    _kernels: {"vmaxps.*zmm": 1, "vmaxps.*ymm": 1, "maxps .*xmm": 1, "vfmadd.*ps.*zmm": 24, "vfmadd.*ps.*ymm": 12},
    _gradient_descent: {"vfmadd.*ps.*ymm": 4, "vdivps.*ymm": 4, "divps .*xmm": 2},
}


@pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("objdump"), reason="needs x86-64 and objdump")
@pytest.mark.parametrize("module", PACKED, ids=lambda module: module.__name__.rpartition(".")[2])
def test_kernels_are_vectors(module):
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", module.__file__], capture_output=True, text=True)
    assert code.returncode == 0
    lines = [line.partition("\t")[2] for line in code.stdout.splitlines()]
    for pattern, least in PACKED[module].items():
        assert sum(bool(re.match(pattern, line)) for line in lines) >= least, f"{pattern}: {Path(module.__file__).name}"
    if module is _viterbi:  # alignments have maxima of single numbers at their edges
        packed = sum(bool(re.match("v?maxp[sd] ", line)) for line in lines)
        assert sum(bool(re.match("v?maxs[sd] ", line)) for line in lines) <= packed
