"""What a fork has loaded of the copy is known, by its content: kills are believed by that, and survivors are told with it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from gate.mutation import inside

PROBE = """
import importlib.util, json, runpy, sys
spec = importlib.util.spec_from_file_location("loading", sys.argv[1])
loading = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loading)
sources = loading.Sources(sys.argv[2])
sources.install()
sys.path.insert(0, sys.argv[2])
ran = runpy.run_path(sys.argv[2] + "/train.py", run_name="__main__")
runpy.run_path(sys.argv[2] + "/../elsewhere.py")
print(json.dumps([ran["__name__"], ran["LOSS"], sources.loaded]))
"""


def test_a_module_and_a_script_that_runs_as_main_are_loaded_and_others_are_not(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    texts = {"train.py": "import model\nLOSS = model.LOSS\n", "model.py": "LOSS = 3\n", "idle.py": "LOSS = 4\n"}
    for name, text in texts.items():
        (tree / name).write_text(text)
    (tmp_path / "elsewhere.py").write_text("")
    loading = str(Path(inside.__file__).with_name("loading.py"))
    said = subprocess.run([sys.executable, "-c", PROBE, loading, str(tree)], capture_output=True, text=True, check=True).stdout
    digests = {name: hashlib.sha256(texts[name].encode()).hexdigest() for name in ("train.py", "model.py")}
    assert json.loads(said) == ["__main__", 3, digests]
