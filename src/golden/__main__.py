"""`python -m golden`, and what gate starts by this file's path: `python .../golden/__main__.py execute REQUEST.json`.

By its path it takes golden from its own folder, whatever else is called golden. Run by multiprocessing in a process that a scenario
spawns, it sets that up and does nothing more.
"""

import os
import sys


def _load_golden() -> None:
    """Makes the package in this file's folder the golden of this process, and takes the folder itself off the import path."""
    here = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120  (pathlib is not imported before the path is right)
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != here]
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("golden", f"{here}/__init__.py", submodule_search_locations=[here])
    assert spec is not None
    assert spec.loader is not None
    sys.modules["golden"] = package = module_from_spec(spec)
    spec.loader.exec_module(package)


if not __package__:  # by its path, or by multiprocessing
    _load_golden()

if __name__ == "__main__":
    from golden.command import main

    sys.exit(main(sys.argv[1:]))

if __name__ == "__mp_main__":
    from golden.process import join

    join()
