"""Encodings, byte-order marks, archives, and texts in the place of paths: the same for every reader."""

import bz2
import codecs
import gzip
import io
import lzma
import zipfile

import pytest

from structsvm.features.columns import ColumnPieces, read_columns
from structsvm.features.svmlight import read_svmlight
from structsvm.features.text.encodings import Encoded
from structsvm.structures.bag_lines import read_bags
from structsvm.structures.dependencies import read_conllu
from structsvm.structures.graphs.files import read_graphs
from structsvm.structures.queries import read_queries
from structsvm.structures.taxonomy import read_taxonomy
from structsvm.structures.trees import read_trees
from structsvm.tasks.alignment.files import read_alignments
from structsvm.tasks.taxonomy.documents import document_pieces, read_documents


def pieces(source):
    found = ColumnPieces(source, 1)
    return [list(found.parse(piece)) for piece in found]


# Readers, with two parts of a file each; every part has a word that is not ASCII.
READERS = {
    "columns": (read_columns, "é DT\ncat NN\n\n", "ö DT\n\n"),
    "pieces of columns": (pieces, "é DT\ncat NN\n\n", "ö DT\n\n"),
    "svmlight": (read_svmlight, "é 1:2\n", "ö 2:1\n"),
    "queries": (read_queries, "1 qid:1 1:2 # é\n", "2 qid:2 1:1 # ö\n"),
    "documents": (read_documents, "a\té\n", "b\tö\n"),
    "pieces of documents": (lambda source: list(document_pieces(source)), "a\té\n", "b\tö\n"),
    "trees": (read_trees, "(S (N é))\n", "(S (N ö))\n"),
    "CoNLL-U": (read_conllu, "1\té\t_\tN\t_\t_\t0\troot\t_\t_\n\n", "1\tö\t_\tN\t_\t_\t0\troot\t_\t_\n\n"),
    "meanings": (
        read_bags,
        '{"sentence": "é", "bag": ["sleep(john)"]}\n',
        '{"sentence": "ö", "bag": ["sleep(john)"]}\n',
    ),
    "graphs": (
        read_graphs,
        '{"nodes": [{"x": 1, "label": "é"}], "edges": []}\n',
        '{"nodes": [{"x": 1, "label": "ö"}], "edges": []}\n',
    ),
    "alignments": (read_alignments, ">é x\nACDE\n>é z\nAC-E\n", ">ö x\nACDE\n>ö z\nAKDE\n"),
    "taxonomy": (read_taxonomy, "é\troot\n", "ö\troot\n"),
}
reader_cases = pytest.mark.parametrize(("reader", "first", "second"), READERS.values(), ids=READERS)


def shown(found):
    """Contents that a reader returns, to compare."""
    if isinstance(found, tuple):
        return [shown(part) for part in found]
    if hasattr(found, "toarray"):
        return found.toarray().tolist()
    if hasattr(found, "tolist"):
        return found.tolist()
    if type(found).__name__ == "Taxonomy":
        return found.nodes
    if hasattr(found, "__iter__") and not isinstance(found, (str, dict)):
        return [shown(part) for part in found]
    if hasattr(found, "__dict__") and not hasattr(found, "words"):
        return {key: shown(value) for key, value in vars(found).items() if key not in ("places", "name")}
    return repr(found)


def from_bytes(reader, data, path):
    path.write_bytes(data)
    return shown(reader(path))


@reader_cases
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "latin-1"])
def test_every_reader_reads_every_encoding(reader, first, second, encoding, tmp_path):
    wanted = from_bytes(reader, (first + second).encode(), tmp_path / "plain")
    data = (first + second).encode(encoding)
    path = tmp_path / "plain"
    path.write_bytes(data)
    assert shown(reader(Encoded(path, encoding))) == wanted
    assert shown(reader(Encoded(io.BytesIO(data), encoding)))
    if encoding != "latin-1":
        assert shown(reader(path)) == wanted


@reader_cases
def test_marks_of_files_that_were_joined(reader, first, second, tmp_path):
    wanted = from_bytes(reader, (first + second).encode(), tmp_path / "plain")
    assert from_bytes(reader, first.encode("utf-8-sig") + second.encode("utf-8-sig"), tmp_path / "plain") == wanted
    marked = codecs.BOM_UTF8 + codecs.BOM_UTF8 + first.encode() + second.encode()
    assert from_bytes(reader, marked, tmp_path / "plain") == wanted


def zipped(data, *names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, data)
    return file.getvalue()


@reader_cases
@pytest.mark.parametrize(
    "compress",
    [gzip.compress, lzma.compress, bz2.compress, lambda data: zipped(data, "folder/", "folder/f", "__MACOSX/._f")],
    ids=["gz", "xz", "bz2", "zip"],
)
def test_every_reader_unfolds(reader, first, second, compress, tmp_path):
    wanted = from_bytes(reader, (first + second).encode(), tmp_path / "plain")
    assert from_bytes(reader, compress((first + second).encode("utf-16")), tmp_path / "plain") == wanted


@reader_cases
def test_an_archive_of_several_files_names_them(reader, first, second, tmp_path):
    (tmp_path / "two.zip").write_bytes(zipped(first.encode(), "a.txt", "b.txt"))
    with pytest.raises(ValueError, match=r"two\.zip: a zip archive of 2 files: a\.txt, b\.txt; unpack"):
        reader(tmp_path / "two.zip")


@reader_cases
def test_other_encodings_are_refused_by_byte_and_line(reader, first, second, tmp_path):
    path = tmp_path / "latin"
    path.write_bytes(first.encode() + second.encode("latin-1"))
    line = first.count("\n") + 1
    with pytest.raises(ValueError, match=rf"latin(:|, line ){line}: bytes that are not UTF-8.*0xf6.*--encoding"):
        reader(path)


@reader_cases
def test_utf_16_without_a_mark_is_refused(reader, first, second, tmp_path):
    for order in ("le", "be"):
        path = tmp_path / "wide"
        path.write_bytes((first + second).encode(f"utf-16-{order}"))
        with pytest.raises(ValueError, match=rf"wide: looks like UTF-16 .*--encoding utf-16-{order}"):
            reader(path)
        assert shown(reader(Encoded(path, f"utf-16-{order}")))


@reader_cases
def test_a_text_is_no_path(reader, first, second):
    with pytest.raises(ValueError, match=r"must be the path of a file, got a text: .*StringIO"):
        reader(first + second)
    with pytest.raises(ValueError, match="must be the path of a file, got a text"):
        reader("word" * 100)
    with pytest.raises(FileNotFoundError, match=r"No such file \(wrap a text into io.StringIO"):
        reader("no such file")


@pytest.mark.parametrize("encoding", ["no such encoding", "base64", "a\0b", None])
def test_encodings_that_are_none(encoding):
    with pytest.raises(ValueError, match="'encoding' parameter must be a text encoding"):
        Encoded("path", encoding)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_wide_file_in_small_reads(size):
    class Slow(io.RawIOBase):
        data = io.BytesIO("é DT\n\nö NN\n".encode("utf-16"))

        def readable(self):
            return True

        def readinto(self, into):
            return self.data.readinto(memoryview(into)[:size])

    assert pieces(Slow()) == [[[("é", "DT")]], [[("ö", "NN")]]]


@pytest.mark.parametrize("reader", [read_columns, pieces])
def test_bytes_that_are_not_of_the_encoding(reader, tmp_path):
    (tmp_path / "f").write_bytes("a b\né b\n".encode())
    with pytest.raises(ValueError, match=r"f.*bytes that are not ascii"):
        reader(Encoded(tmp_path / "f", "ascii"))
