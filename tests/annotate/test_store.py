"""Answers on disk: killed processes, full disks, damaged files."""

import errno
import json
import os
import signal
import subprocess
import sys

import pytest
from labelled_addresses import session_of

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


@pytest.mark.parametrize("text", ["one line", "one\ntwo", '{"text": "a"}', ""], ids=["text", "two", "json", "empty"])
def test_a_file_of_something_else_stays_as_it_is(tmp_path, text):
    """A text whose last line has no end is not taken for an answer that was torn off."""
    path = tmp_path / "a.txt"
    path.write_text(text)
    if text:
        with pytest.raises(StoreError, match=r"a\.txt(:1)?: (is no file|no record) of (an )?answer"):
            Store(str(path))
    else:
        Store(str(path)).close()
    assert path.read_text() == text


def test_records_of_something_else_stay_as_they_are(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    path = tmp_path / "a.txt.answers.jsonl"
    path.write_text('{"text": "a"}\n{"text": "b"}')
    with pytest.raises(StoreError, match=r"jsonl:1: no record of an answer"):
        session_of(tmp_path / "a.txt")
    assert path.read_text() == '{"text": "a"}\n{"text": "b"}'


@pytest.mark.parametrize("cut", [1, 20, 70], ids=lambda cut: f"{cut}bytes")
def test_a_torn_first_line_is_written_again(tmp_path, cut):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    session_of(tmp_path / "a.txt").store.close()
    path = tmp_path / "a.txt.answers.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    session = session_of(tmp_path / "a.txt")
    session.store.close()
    assert len(path.read_bytes()) == len(whole) and "was not written whole" in session.notes[0]


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


@pytest.mark.parametrize("is_replaced", [False, True], ids=["gone", "replaced"])
def test_a_file_that_is_gone_takes_no_answer(tmp_path, is_replaced):
    """It is written to through a descriptor: without a name, nobody would find the answer again."""
    path, aside = tmp_path / "a.jsonl", tmp_path / "aside"
    with Store(str(path)) as store:
        store.append({"item": 0})
        before = path.read_bytes()
        os.link(path, aside)
        path.unlink()
        if is_replaced:
            path.write_bytes(before)
        with pytest.raises(OSError, match=r"a\.jsonl' was moved, deleted or replaced"):
            store.append({"item": 1})
        assert store.records == [{"item": 0}] and aside.read_bytes() == before
        os.replace(aside, path)
        store.append({"item": 2})
        assert [json.loads(line)["item"] for line in path.read_text().splitlines()] == [0, 2]


def test_a_folder_that_became_a_file_takes_no_answer(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with Store(str(folder / "a.jsonl")) as store:
        folder.rename(tmp_path / "other")
        folder.touch()
        with pytest.raises(OSError, match=r"a\.jsonl' was moved, deleted or replaced"):
            store.append({"item": 1})


@pytest.mark.parametrize("text", ["", '{"item": 0}\n{"item": 7}\n'], ids=["emptied", "longer"])
def test_a_file_that_another_program_has_changed_takes_no_answer(tmp_path, text):
    path = tmp_path / "a.jsonl"
    with Store(str(path)) as store:
        store.append({"item": 0})
        path.write_text(text)
        with pytest.raises(OSError, match=r"a\.jsonl' was changed by another program"):
            store.append({"item": 1})
        assert path.read_text() == text and store.records == [{"item": 0}]


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
