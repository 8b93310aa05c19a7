"""Text files: small sound ones, changed in lines, fields and bytes, and what reads each kind."""

from __future__ import annotations

import io
import os
import random
import re
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from structsvm.features.columns import ColumnFileError, ColumnPieces, read_columns
from structsvm.features.encoder import FeatureEncoder
from structsvm.features.svmlight import read_svmlight
from structsvm.features.tables.attribute_files import read_attributes, write_attributes
from structsvm.oracles.cky import CKYOracle
from structsvm.structures.bag_lines import read_bags
from structsvm.structures.dependencies import parse_conllu, read_conllu
from structsvm.structures.grammar import Grammar
from structsvm.structures.graphs.files import read_graphs
from structsvm.structures.meanings import MeaningGrammar, as_meaning, format_meaning, parse_meaning
from structsvm.structures.queries import read_queries, read_sizes
from structsvm.structures.rules import annotate
from structsvm.structures.substitution_matrix import SubstitutionMatrix
from structsvm.structures.taxonomy import read_taxonomy
from structsvm.structures.trees import clean_tree, read_trees
from structsvm.tasks import DependencyParser, GraphLabeler, Ranker, SemanticParser, SequenceLabeler
from structsvm.tasks.alignment.files import read_alignments
from structsvm.tasks.sequence.labels import known_columns
from structsvm.tasks.taxonomy.documents import read_documents

MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()

FIELDS = [
    b"0", b"1", b"-1", b"1e308", b"-1e38", b"nan", b"inf", b"9" * 30, b"2147483648", b"0:1", b"1:1", b"1:nan", b"x",
    b"(", b")", b"[", b"]", b"{", b"}", b'"', b"'", b"->", b"|", b"#", b"%x[0,0]", b"%x[-1,9]", b"%", b"*", b"^", b"<",
    b">", b"-", b".", b",", b":", b"\\", b"/u0/", b"/u110000/", b"\\ud800", b"B", b"-NONE-", b"@", b"\xc3\xa9", b"\xff",
    b"\x00", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\x85", b"\x0b", b"\x1c", b"a" * 300,
]  # fmt: skip
ENDS = [b"\n", b"\r\n", b"\r", b"\n\n", b"", b" \n", b"\t\n", b"\x0c"]


# ---- mutants ------------------------------------------------------------------------------------


def mutate(rng: random.Random, seed: bytes) -> bytes:
    """A mutant: one to four changes to lines, fields or bytes."""
    data = seed
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        data = rng.choice((change_lines, change_fields, change_fields, change_bytes))(rng, data)
    return data[: 1 << 16]


def change_lines(rng: random.Random, data: bytes) -> bytes:
    """Lines that are gone, doubled, elsewhere, joined, cut or end in another way."""
    lines = data.splitlines(keepends=True) or [b""]
    k, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(8):
        case 0:
            del lines[k]
        case 1:
            lines[k:k] = [lines[other]] * rng.choice((1, 2, 50))
        case 2:
            lines[k], lines[other] = lines[other], lines[k]
        case 3:
            lines[k] = lines[k].rstrip(b"\r\n")
        case 4:
            lines[k] = lines[k].rstrip(b"\r\n") + rng.choice(ENDS)
        case 5:
            lines = lines[:k]
        case 6:
            rng.shuffle(lines)
        case _:
            lines[k] = lines[k][: rng.randrange(len(lines[k]) + 1)]
    return b"".join(lines)


def change_fields(rng: random.Random, data: bytes) -> bytes:
    """One field that is another, gone, doubled or changed."""
    parts = re.split(rb"([\s,:()<>\[\]\"'|]+)", data)
    k = rng.randrange(len(parts))
    match rng.randrange(5):
        case 0:
            parts[k] = rng.choice(parts)
        case 1:
            parts[k] = b""
        case 2:
            parts[k] *= rng.choice((2, 3, 200))
        case 3:
            parts[k] += rng.choice(FIELDS)
        case _:
            parts[k] = rng.choice(FIELDS)
    return b"".join(parts)


def change_bytes(rng: random.Random, data: bytes) -> bytes:
    """A few bytes that are flipped, gone, added, or repeated many times."""
    k = rng.randrange(len(data) + 1)
    end = min(len(data), k + rng.choice((1, 1, 2, 8, 40)))
    match rng.randrange(5):
        case 0:
            return data[:k] + bytes(b ^ (1 << rng.randrange(8)) for b in data[k:end]) + data[end:]
        case 1:
            return data[:k] + data[end:]
        case 2:
            return data[:k] + rng.randbytes(rng.choice((1, 2, 4))) + data[k:]
        case 3:
            return data[:end] + data[k:end] * rng.choice((1, 5, 1000)) + data[end:]
        case _:
            return data[:k]


# ---- seeds and readers --------------------------------------------------------------------------

CONLLU = b"""# sent_id = 1
1-2\tzum\t_\t_\t_\t_\t_\t_\t_\t_
1\tzu\tzu\tADP\tAPPR\t_\t3\tcase\t_\t_
2\tdem\tder\tDET\tART\tCase=Dat|Number=Sing\t3\tdet\t_\t_
2.1\tx\t_\tX\t_\t_\t_\t_\t1:dep\t_
3\tMeer\tMeer\tNOUN\tNN\t_\t0\troot\t_\tSpaceAfter=No

1\tah\t_\t_\t_\t_\t0\troot\t_\t_
2\tso\t_\t_\t_\t_\t1\tadvmod:emph\t_\t_

"""
COLUMNS = b"the DT B-NP\ndog NN I-NP\nsees VB O\n\na DT B-NP\ncat NN I-NP\n\nruns VB O\n"
PARTIAL = b"the DT B|I\ndog NN I\nsees VB _\n\na DT B|\\_|A\\|B\ncat NN \\_\n\nruns VB O\ngoes VB A\\|B\n"
TEMPLATES = (
    b"# window\nU00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[-1,1]/%x[0,1]\nU03:%suffix2[0,0]\nU04:%shape[1,0]\nB\nB1:%x[0,0]\n"
)
TREES = (
    b"(S (NP (DT the) (NN dog)) (VP (VB sees) (NP (DT a) (NN cat))))\n"
    b"( (S (NP-SBJ (-NONE- *T*-1)) (VP (VB runs)\n  (ADVP|PRT (RB -LRB-)))))\n(TOP (S (S (NN x))))\n"
)
GRAMMAR = (
    b"# toy\nS -> NP VP\nNP -> DT NN | NN\nVP -> VB NP | VB | VP PP PP\nPP -> IN NP\n"
    b"DT -> 'the' | \"a\"\nNN -> 'dog' | 'cat'\nVB -> 'sees'\nIN -> 'on'\nS -> VP\nNP^S -> NN\n"
)
TAXONOMY = b"# child, parent\ncomp\tall\nrec\tall\nmac\tcomp\npc\tcomp\nautos\trec\nmotor\trec\nmotor\tcomp\n"
SVMLIGHT = b"+1 1:0.5 3:2 7:-1e-3\n-1 2:1 # comment\n1.0 1:1\n\n-1 4:3.25 5:1\n"
QUERIES = b"2 qid:1 1:0.5 3:2\n0 qid:1 2:1 # comment\n1.5 qid:7 1:-1\n\n0 qid:7 4:3.25 5:1\n"
DOCUMENTS = b"mac\tapple disk it was new\npc\twindows disk\nautos\tcar wheel\n"
BAGS = (
    b'{"sentence": "purple9 passes to purple2", "bag": ["pass(purple9,purple2)", "kick(purple9)"]}\n'
    b'{"sentence": ["a", "b"], "bag": ["ballstopped()"], "alignment": ["-", "ballstopped"]}\n'
)
GRAPHS = (
    b'{"nodes": [{"features": [0.5, 1], "label": "a"}, {"features": [1, 2], "label": "b"}], "edges": [[0, 1, [0.3]]]}\n'
    b'{"nodes": [{"features": [0.1, 1], "label": null}], "edges": []}\n'
)
NAMED = (
    b'[{"nodes": [{"id": "u", "x": 1, "label": 0}, {"id": "v", "x": 2.5, "label": 1}], '
    b'"links": [{"source": "u", "target": "v"}]}]'
)
GRAPHML = (
    b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    b'<key id="d" for="node" attr.name="x" attr.type="double"/>\n'
    b'<key id="l" for="node" attr.name="label" attr.type="string"/>\n<graph edgedefault="undirected">\n'
    b'<node id="a"><data key="d">1.5</data><data key="l">up</data></node>\n<node id="b"><data key="d">0.5</data>'
    b'<data key="l">down</data></node>\n<edge source="a" target="b"/>\n</graph></graphml>\n'
)
MEANINGS = (
    b"# robots\n@S -> pass ( @P , @P )\n@S -> kick ( @P )\n@S -> ballstopped ( )\n@P -> purple1\n3\t@P -> of ( @P )\n"
)
QUOTED = b"S -> 'pass' '(' P ',' P ')'\nS -> 'ballstopped' '(' ')'\nS -> P\nP -> 'purple1'\nP -> 'a'\n"
PATTERNS = b'# words\nu:w=%X[-1,0]\nu:%t[0,1,"^\\u.*\\d?$"]/%m[1,0,".$"]\n*:%x[0,1]\nb\n'
ATTRIBUTES = b"B\tw=the\tn:2.5\tc\\:d\nI\tx\tw=dog\n\nO\ty\\\\\n"
FASTA = b">a first\nACD-EF\n>a second\nAC-DEF\n>b\nMKV..lv\n>b\nMK-VLVA\n"
STOCKHOLM = (
    b"# STOCKHOLM 1.0\n#=GF ID one\n#=GS a/1-5 AC P1\na/1-5 ACD-EF\n#=GR a/1-5 SS CCCHHH\nb AC-DEF\nc .CADEF\n"
    b"#=GC SS_cons HHHCCC\n//\n# STOCKHOLM 1.0\na MKV-LV\nb MK-VLV\n\na A\nb C\n//\n"
)
CLUSTAL = (
    b"CLUSTAL O(1.2.4) multiple sequence alignment\n\n\na      ACD-EF 5\nb      AC-DEF 5\n       **. **\n\n"
    b"a      MKV 8\nb      M-V 7\n       * *\n"
)
A2M = b">a first\nACD-EF\n>b\nAC-DEF\n>c\nACdDEF\n"
MATRIX = b"# scores\n   A  C  G\nA  2 -1 -1\nC -1  3 -2\nG -1 -2  4.5\n"

SENTENCE = [["the", "DT"], ["dog", "NN"]]


def use_columns(data: bytes) -> None:
    """Read a column file and number its features."""
    columns = read_columns(io.BytesIO(data))
    tokens = FeatureEncoder("rich").fit_transform(columns)
    FeatureEncoder("attributes", hash_bits=4).fit_transform(columns)
    if tokens.n_features and columns.n_columns < 50:
        [columns.select([j]) for j in range(columns.n_columns)]


def use_pieces(data: bytes) -> None:
    """Read a column file piece by piece: what is read, or said, is that of the whole."""
    cut = 1 + len(data) % 7
    parts = (data[k : k + cut] for k in range(0, len(data), cut))

    class Pipe(io.RawIOBase):
        name = "<lines>"

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            part = next(parts, b"")
            buffer[: len(part)] = part
            return len(part)

    def pieces() -> Any:
        found = ColumnPieces(Pipe(), len(data) % 4 or None)
        return [sequence for piece in found for sequence in found.parse(piece)]

    whole, same = outcome(lambda: list(read_columns(io.BytesIO(data)))), outcome(pieces)
    assert whole == same, same
    if isinstance(whole, str):
        raise ColumnFileError(whole)


def outcome(read: Callable[[], Any]) -> Any:
    """The data read, or the text of the error."""
    try:
        return read()
    except ColumnFileError as error:
        return str(error)


def use_partial(data: bytes) -> None:
    """Read labels that are known in part, and train on them."""
    columns = read_columns(io.BytesIO(data))
    if 1 < columns.n_columns < 50:
        y = known_columns(columns.select([columns.n_columns - 1]))
        SequenceLabeler(C=0.1, max_iter=1, random_state=0).fit(columns.drop_last(), y).predict(columns.drop_last())


def use_templates(data: bytes) -> None:
    """Number features by templates."""
    encoder = FeatureEncoder(data.decode() + "\n")
    columns = read_columns(io.BytesIO(COLUMNS)).select([0, 1])
    encoder.fit_transform(columns)
    encoder.transform(columns)
    encoder.feature_names, encoder.bigram_names  # noqa: B018 (built when they are asked for)


def use_attributes(data: bytes) -> None:
    """Read tokens of attributes, and write what was read."""
    X, y = read_attributes(io.BytesIO(data))
    path = os.path.join(MEMORY, f"structsvm-fuzz-{os.getpid()}.attributes")
    try:
        write_attributes(path, X, y)
        assert read_attributes(path)[1] == y
    finally:
        if os.path.exists(path):
            os.unlink(path)


def use_trees(data: bytes) -> None:
    """Read trees, clean and print them."""
    for tree in read_trees(io.BytesIO(data)):
        str(tree), hash(tree), list(tree.spans()), tree.tokens(), tree == tree
        cleaned = clean_tree(tree)
        if cleaned is not None and "^" not in str(cleaned):
            annotate(cleaned, 3)


def use_grammar(data: bytes) -> None:
    """Read a grammar, write it, and parse with it."""
    for h in (None, 1):
        grammar = Grammar(data.decode(), h=h)
        oracle = CKYOracle(grammar)
        weights = np.linspace(-1.0, 1.0, oracle.n_features)
        list(oracle.kbest((grammar.terminals or ["x"])[:3] * 2, weights, 3))
    str(grammar)


def use_taxonomy(data: bytes) -> None:
    """Read a taxonomy and ask for everything in it."""
    path = os.path.join(MEMORY, f"structsvm-fuzz-{os.getpid()}.txt")
    with open(path, "wb") as file:
        file.write(data)
    try:
        taxonomy = read_taxonomy(path)
    finally:
        os.unlink(path)
    taxonomy.restricted(taxonomy.leaves)
    for kind in ("tree", "path", "zero_one"):
        taxonomy.loss(kind, taxonomy.leaves[0], taxonomy.leaves[-1])
    taxonomy.path(taxonomy.leaves[-1]), taxonomy.indicators(taxonomy.leaves[:10]), repr(taxonomy)


def use_bags(data: bytes) -> None:
    """Read sentences and bags."""
    found = read_bags(io.BytesIO(data))
    for bag in found.bags:
        for meaning in bag or ():
            format_meaning(as_meaning(parse_meaning(meaning)))


def use_questions(data: bytes) -> None:
    """Read sentences and bags, train hybrid trees on them, and parse."""
    found = read_bags(io.BytesIO(data))
    parser = SemanticParser(method="hybrid", max_iter=1, random_state=0).fit(found.sentences, found.bags)
    parser.predict_kbest(found.sentences, 2)


def use_meanings(data: bytes) -> None:
    """Read a grammar of meanings and look whether trees are its own."""
    MeaningGrammar(data.decode())


def use_graphs(data: bytes) -> None:
    """Read graphs, and train on them."""
    found = read_graphs(io.BytesIO(data))
    model = GraphLabeler(C=0.1, max_iter=1, random_state=0)
    try:
        model.fit(found.X, found.y)
    except TypeError as error:  # features of no kind that there is, as Python users see it
        raise ValueError(str(error)) from error
    model.predict(found.X)


def use_alignments(data: bytes) -> None:
    """Read alignments and take them apart."""
    found = read_alignments(io.BytesIO(data))
    found.check_aligned("<lines>")
    found.pairs  # noqa: B018 (made when it is asked for)


def use_many(data: bytes) -> None:
    """Read an alignment of many sequences, of the format that its first byte is of, as pairs."""
    form = {b"#": "stockholm", b"C": "clustal"}.get(data[:1], "a2m")
    for pairs in ("all", "first", "adjacent"):
        found = read_alignments(io.BytesIO(data), form, pairs=pairs)
        found.check_aligned("<lines>")
        found.pairs  # noqa: B018 (made when it is asked for)


def use_rank(data: bytes) -> None:
    """Read rows of queries, train on them, and rank."""
    X, grades, qid = read_queries(io.BytesIO(data))
    if X.shape[1] < 10**5:
        Ranker(C=0.1, max_iter=1, random_state=0).fit(X, grades, qid=qid).predict(X)


def use_conllu(data: bytes) -> None:
    """Read sentences, write and draw them, and train on those that are trees."""
    trees = read_conllu(io.BytesIO(data))
    assert parse_conllu("".join(tree.to_conllu() for tree in trees)) == trees
    for tree in trees:
        tree.pretty()
    parser = DependencyParser(C=0.1, max_iter=1, random_state=0).fit(trees)
    parser.predict(trees)


def reader(use: Callable[[bytes], Any]) -> Callable[[bytes, Any], str]:
    """The `read` of a kind."""

    def read(data: bytes, seed: Any) -> str:
        use(data)
        return "is read"

    return read


# Name: seeds, and what reads them.
TEXTS: dict[str, tuple[list[bytes], Callable[[bytes], Any]]] = {
    "conllu": ([CONLLU], use_conllu),
    "columns": ([COLUMNS], use_columns),
    "pieces": ([COLUMNS, PARTIAL, b"\xef\xbb\xbf" + COLUMNS.replace(b"\n", b"\r\n")], use_pieces),
    "templates": ([TEMPLATES, PATTERNS], use_templates),
    "attributes": ([ATTRIBUTES], use_attributes),
    "trees": ([TREES], use_trees),
    "grammar": ([GRAMMAR], use_grammar),
    "taxonomy": ([TAXONOMY], use_taxonomy),
    "svmlight": ([SVMLIGHT], lambda data: read_svmlight(io.BytesIO(data))),
    "queries": ([QUERIES], use_rank),
    "sizes": ([b"3\n2\n0004\n1\n"], lambda data: read_sizes(io.BytesIO(data), 10, "rows")),
    "documents": ([DOCUMENTS, SVMLIGHT], lambda data: read_documents(io.BytesIO(data))),
    "partial": ([PARTIAL], use_partial),
    "bags": ([BAGS], use_bags),
    "questions": ([BAGS], use_questions),
    "graphs": ([GRAPHS, NAMED, GRAPHML], use_graphs),
    "meanings": ([MEANINGS, QUOTED], use_meanings),
    "alignments": ([FASTA], use_alignments),
    "many": ([STOCKHOLM, CLUSTAL, A2M], use_many),
    "matrix": ([MATRIX], lambda data: SubstitutionMatrix.from_ncbi(data.decode("ascii"))),
}
