"""Answers on disk: killed processes, full disks, damaged files."""

import errno
import json
import os
import signal
import subprocess
import sys

import pytest

from structsvm.annotate.store import Store, StoreError


def test_records_come_back(tmp_path):
    path = str(tmp_path / "a.jsonl")
    records = [{"item": k, "label": "größe <script> 👩‍👩‍👧"} for k in range(3)]
    with Store(path) as store:
        for record in records:
            store.append(record)
    with Store(path) as store:
        assert store.records == records and not store.notes


@pytest.mark.parametrize("cut", [1, 5, 20], ids=lambda cut: f"{cut}bytes")
def test_a_torn_last_line_is_dropped_and_said(tmp_path, cut):
    path = tmp_path / "a.jsonl"
    with Store(str(path)) as store:
        store.append({"item": 0})
        store.append({"item": 1, "label": "long enough to be torn"})
    path.write_bytes(path.read_bytes()[:-cut])
    with Store(str(path)) as store:
        assert store.records == [{"item": 0}]
        assert "was not written whole" in store.notes[0] and str(path) in store.notes[0]
        store.append({"item": 2})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [{"item": 0}, {"item": 2}]


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"item": 0}\n{"item": \n{"item": 2}\n')
    with pytest.raises(StoreError, match=r"a\.jsonl:2: no record of an answer"):
        Store(str(path))
    path.write_text('{"item": 0}\n[1]\n')
    with pytest.raises(StoreError, match=r"a\.jsonl:2: no record of an answer: not an object"):
        Store(str(path))


@pytest.mark.parametrize("room", [0, 7], ids=["none", "some"])
def test_on_a_full_disk_nothing_has_changed(tmp_path, room):
    """The first write has room for some bytes, the next for none."""
    rooms = []

    def write(descriptor, data):
        if not rooms:
            return os.write(descriptor, data)
        taken = rooms.pop(0)
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.write(descriptor, data[:taken])

    path = tmp_path / "a.jsonl"
    with Store(str(path), write) as store:
        store.append({"item": 0})
        before = path.read_bytes()
        rooms += [room, 0] if room else [0]
        with pytest.raises(OSError, match="No space left"):
            store.append({"item": 1})
        assert path.read_bytes() == before and store.records == [{"item": 0}]
        store.append({"item": 2})
        assert store.records == [{"item": 0}, {"item": 2}]
    with Store(str(path)) as store:
        assert store.records == [{"item": 0}, {"item": 2}]


def test_two_processes_do_not_write_one_file(tmp_path):
    path = str(tmp_path / "a.jsonl")
    with Store(path), pytest.raises(StoreError, match="another structsvm annotate has it open"):
        Store(path)
    Store(path).close()


def test_each_answer_is_flushed_before_it_counts(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    with Store(str(tmp_path / "a.jsonl")) as store:
        synced.clear()
        store.append({"item": 0})
        assert synced == [len('{"item": 0}\n')]


def test_a_killed_process_loses_nothing_that_it_said(tmp_path):
    """It says each record after it is stored, and is killed in the midst of writing."""
    path = tmp_path / "a.jsonl"
    program = (
        "import sys\nfrom structsvm.annotate.store import Store\nstore = Store(sys.argv[1])\n"
        "for k in range(10**9):\n    store.append({'item': k, 'text': 'x' * 1000})\n    print(k, flush=True)\n"
    )
    command = [sys.executable, "-P", "-c", program, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said = [int(process.stdout.readline()) for _ in range(50)]
        process.send_signal(signal.SIGKILL)
        said += map(int, process.stdout.read().split())
    with Store(str(path)) as store:
        assert [record["item"] for record in store.records[: len(said)]] == said
        assert len(store.records) - len(said) in (0, 1)
