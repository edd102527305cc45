"""Run the tests on every supported Python and as on several kinds of processor: ``nox``.

``nox --list`` lists the sessions; ``nox -s processors -- haswell two_threads`` runs two kinds.
"""

import nox

nox.needs_version = ">=2025.2"

PROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PROJECT)

# Each makes numpy and OpenBLAS compute as on another machine.
PROCESSORS = {
    **{
        kernel.lower(): {"OPENBLAS_CORETYPE": kernel}
        for kernel in ("SkylakeX", "Haswell", "Sandybridge", "Prescott")
    },
    # The names of numpy 2.4; a name that it does not know would be an ImportWarning.
    "no_avx": {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL"},
    "two_threads": {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
}


@nox.session(python=PYTHONS)
def newest(session: nox.Session) -> None:
    """Run all tests with the newest dependencies."""
    session.install("-e", ".[test,dask,onnx]")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python=PYTHONS[0])
def oldest(session: nox.Session) -> None:
    """Run all tests with the oldest dependencies that the project declares."""
    declared = PROJECT["project"]["dependencies"]
    declared = [*declared, *PROJECT["project"]["optional-dependencies"]["files"]]
    session.install("-e", ".[test]", *(pin.replace(">=", "==") for pin in declared))
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session(python=PYTHONS[0])
def processors(session: nox.Session) -> None:
    """Run all tests once for each kind of processor, or for those that are named."""
    session.install("-e", ".[test]")
    for name in session.posargs or PROCESSORS:
        session.log(name)
        session.run("python", "-m", "pytest", env=PROCESSORS[name])
