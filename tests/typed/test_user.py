"""The typed program does at run time what the type checkers were told."""

import importlib.util
import sys
from pathlib import Path


def test_runs(tmp_path, capsys, monkeypatch):
    spec = importlib.util.spec_from_file_location("typed_user", Path(__file__).parent / "user.py")
    user = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, user)  # to be pickled
    spec.loader.exec_module(user)
    user.main(tmp_path / "chunks.model")
    assert "'the', 'cat', 'sleeps'" in capsys.readouterr().out
    assert user.own_oracle() < 0.1
