"""The data sets: their files with hashes, their origins and licences, and the files made from the origins."""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from structsvm.structures.trees import Tree, clean_tree, read_trees


@dataclass(frozen=True)
class Source:
    """Files of one data set and their origin.

    Attributes
    ----------
    folder : str
        Folder of the files in the data folder.
    sha256 : dict of str to str
        File name to the hash of its content.
    url : str
        Public address of the archive that the files are made from.
    licence : str
    convert : callable, optional
        Path of the downloaded archive -> dict of file name to the bytes of that file. None: the files cannot be made
        from the origin and must be present.
    """

    folder: str
    sha256: Mapping[str, str]
    url: str
    licence: str
    convert: Callable[[Path], dict[str, bytes]] | None = None


# ---- from the origins to our files ---------------------------------------------------------------


def _gz(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _zip_members(names: Mapping[str, str]) -> Callable[[Path], dict[str, bytes]]:
    """Converter for files copied from a zip archive: file name -> member."""

    def convert(path: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(path) as archive:
            content = {file: archive.read(member) for file, member in names.items()}
        return {file: _gz(text) if file.endswith(".gz") else text for file, text in content.items()}

    return convert


def _treebank(convert: Callable[[Sequence[Tree]], str], file: str) -> Callable[[Path], dict[str, bytes]]:
    """Converter for text made of trees without traces, empty nodes and functions.

    wsj_0001 to wsj_0159 are the training part, wsj_0160 to wsj_0199 the test part.
    """

    def members(path: Path) -> dict[str, bytes]:
        made = {}
        with zipfile.ZipFile(path) as archive:
            for part, ids in (("train", range(1, 160)), ("test", range(160, 200))):
                texts = (archive.read(f"treebank/combined/wsj_{k:04d}.mrg").decode("ascii") for k in ids)
                trees = [clean_tree(tree) for tree in read_trees(texts)]
                made[file.format(part)] = _gz(convert([tree for tree in trees if tree]).encode("ascii"))
        return made

    return members


def _tagged(trees: Sequence[Tree]) -> str:
    """``word tag`` lines, with a blank line between two sentences."""
    return "\n".join("".join(f"{word} {tag}\n" for word, tag in tree.tokens()) for tree in trees)


def _bracketed(trees: Sequence[Tree]) -> str:
    """A tree per line."""
    return "".join(f"{tree}\n" for tree in trees)


def _ocr_letters(path: Path) -> dict[str, bytes]:
    """Arrays of letter.data, whose lines are id, letter, next id, word, position, fold, 16 x 8 pixels."""
    with gzip.open(path, "rt", encoding="ascii") as lines:
        rows = [line.split() for line in lines]
    is_last = np.array([row[2] == "-1" for row in rows])
    digits = "".join(digit for row in rows for digit in row[6:134])
    pixels = np.frombuffer(digits.encode("ascii"), dtype=np.uint8).reshape(-1, 128) - ord("0")
    file = io.BytesIO()
    np.savez_compressed(
        file,
        pixels=np.packbits(pixels, axis=1),
        labels=np.array([ord(row[1]) - ord("a") for row in rows], dtype=np.uint8),
        offsets=np.append(0, np.flatnonzero(is_last) + 1).astype(np.int32),
        folds=np.array([row[5] for row in rows], dtype=np.uint8)[is_last],
    )
    return {"ocr.npz": file.getvalue()}


def _clinc150(path: Path) -> dict[str, bytes]:
    """Queries and domains of the archive; node ids are sorted by depth, then by name."""
    with zipfile.ZipFile(path) as archive:
        top = archive.namelist()[0].split("/")[0]
        queries, domains = (json.loads(archive.read(f"{top}/data/{n}.json")) for n in ("data_full", "domains"))
    above = {intent: domain for domain, intents in domains.items() for intent in intents}
    groups, leaves = sorted(domains), sorted(f"{domain}/{intent}" for intent, domain in above.items())
    ids = {name: k for k, name in enumerate(["ROOT", *groups, *leaves])}
    table = ["id\tparent\tdepth\tis_leaf\tpath", "0\t-1\t0\t0\tROOT"]
    table += [f"{ids[group]}\t0\t1\t0\t{group}" for group in groups]
    table += [f"{ids[leaf]}\t{ids[leaf.split('/')[0]]}\t2\t1\t{leaf}" for leaf in leaves]
    rows = [
        (part, ids[f"{above[intent]}/{intent}"], " ".join(text.split()))
        for part, key in (("train", "train"), ("valid", "val"), ("test", "test"))
        for text, intent in queries[key]
    ]
    lines = [f"q{k:05d}\t{part}\t{leaf}\t{text}\n" for k, (part, leaf, text) in enumerate(rows)]
    return {
        "taxonomy.tsv": "".join(f"{line}\n" for line in table).encode(),
        "docs.tsv.gz": _gz("".join(lines).encode()),
    }


def _letter(path: Path) -> dict[str, bytes]:
    """The rows of the file, without its header."""
    return {"letter-recognition.data.gz": _gz(path.read_bytes().partition(b"\n")[2])}


def _rank_lightgbm(path: Path) -> dict[str, bytes]:
    """Rows with a qid behind the grade: numbers of the published sizes, from 1 on in training, from 1001 on in test."""
    made = {}
    with zipfile.ZipFile(path) as archive:
        folder = archive.namelist()[0].split("/")[0] + "/examples/lambdarank/rank."
        for part, first in (("train", 1), ("test", 1001)):
            rows, sizes = (archive.read(folder + part + end).decode("ascii").splitlines() for end in ("", ".query"))
            ids = (first + k for k, size in enumerate(sizes) for _ in range(int(size)))
            split = ((row.partition(" "), qid) for row, qid in zip(rows, ids, strict=True))
            text = "".join(f"{grade} qid:{qid} {pairs}\n" for (grade, _, pairs), qid in split)
            made[f"{part}.letor.gz"] = _gz(text.encode("ascii"))
    return made


# ---- the table -----------------------------------------------------------------------------------

_NLTK = "https://raw.githubusercontent.com/nltk/nltk_data/5db857e6f7df11eabb5e5665836db9ec8df07e28/packages/corpora/"
_PARTIAL_LABELS = (
    "https://raw.githubusercontent.com/agapiR/partial-label-learning/003e9f8b11eae8a135fe42ab19c74ce5bff7cb6a/"
    "data/realworld/"
)

_USADDRESS, _ANYSTYLE = "aa7699b53a0843fc443f9e87285b88cbd9eaf50a", "c6f5fb2fa6e8ce9456ad1e1e88d6bba5f3d7731d"
_MATRICES = "biopython-biopython-188/Bio/Align/substitution_matrices/data/"
_MATRIX_NAMES = ("BLOSUM45", "BLOSUM50", "BLOSUM62", "BLOSUM80", "BLOSUM90", "GONNET1992", "PAM250", "PAM30", "PAM70")

SOURCES: dict[str, Source] = {
    "conll2000": Source(
        "chunk_conll2000",
        {
            "train.txt.gz": "82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea",
            "test.txt.gz": "73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628",
        },
        _NLTK + "conll2000.zip",
        "none stated; text from the Penn Treebank (LDC): research use only",
        _zip_members({"train.txt.gz": "conll2000/train.txt", "test.txt.gz": "conll2000/test.txt"}),
    ),
    "conll2002": Source(
        "ner_conll2002_es",
        {
            "esp.train.gz": "a20d95cab7d88a19a86f8c1ad6329325c99fbd9529ed978cbd7e31d4b01b4008",
            "esp.testa.gz": "85c17793b77881c53d19017d9d0f1e6fb98b7ddcab54a5f24b05ed1793103c87",
            "esp.testb.gz": "1f8f7a392c6d4979a5592a5794eed43d7869b46da6851bbcde99714149f1d016",
        },
        _NLTK + "conll2002.zip",
        "research use in the context of the CoNLL-2002 shared task only",
        _zip_members({f"esp.{part}.gz": f"conll2002/esp.{part}" for part in ("train", "testa", "testb")}),
    ),
    "addresses": Source(
        "address_us",
        {
            "train.xml.gz": "dbd125fa01fbdbc4e25cce722c648ce4e224e4c9bdb9b5a14498aa8a042aee32",
            "test_labeled.xml.gz": "2a5f222a4c52c73d9abacb3be21b501972d1bfb48ebe7d8bbb80671ea5e755e5",
            "test_us50.xml.gz": "e4dbaa8a7e95fd7d099bfe89ef5881c751f4b4a808c739a8bc2493289eb2e957",
            "test_osm.xml.gz": "bd1a2c19e48058fbf2f724803703b9137b9e5d3d907db8273f46ebd6796d9143",
        },
        f"https://github.com/datamade/usaddress/archive/{_USADDRESS}.zip",
        "MIT",
        _zip_members(
            {
                "train.xml.gz": f"usaddress-{_USADDRESS}/training/labeled.xml",
                "test_labeled.xml.gz": f"usaddress-{_USADDRESS}/measure_performance/test_data/labeled.xml",
                "test_us50.xml.gz": f"usaddress-{_USADDRESS}/measure_performance/test_data/us50_test_tagged.xml",
                "test_osm.xml.gz": f"usaddress-{_USADDRESS}/measure_performance/test_data/synthetic_clean_osm_data.xml",
            }
        ),
    ),
    "citations": Source(
        "cite_anystyle",
        {
            "train.xml.gz": "1bdfd9dc3e70961a51bfd5cfefb66898bed163d1b7a59fa0716c59a675648079",
            "test.xml.gz": "d3c55d938d24f18b4b4ba68d73df28139638c559d9c2d4544936fe3b535d9276",
        },
        f"https://github.com/inukshuk/anystyle/archive/{_ANYSTYLE}.zip",
        "BSD-2-Clause",
        _zip_members(
            {
                f"{part}.xml.gz": f"anystyle-{_ANYSTYLE}/res/parser/{member}.xml"
                for part, member in (("train", "core"), ("test", "gold"))
            }
        ),
    ),
    "treebank_tags": Source(
        "wsj_sample",
        {
            "pos.train.txt.gz": "9f84e2e270b9f12b71ee856c0f6614cfa851a7db438a218e040b972e2f0a2016",
            "pos.test.txt.gz": "b0f22deb191962614cf58ee967855dea21b81295d7bd4311c2ec280c0093ee1e",
        },
        _NLTK + "treebank.zip",
        "10 % fragment of the Penn Treebank, (C) LDC 1995: non-commercial use only",
        _treebank(_tagged, "pos.{}.txt.gz"),
    ),
    "treebank_sample": Source(
        "wsj_sample",
        {
            "clean.train.mrg.gz": "902f0d778673576322619ec2dda577f05d6eac3118459aa9a5ef2a87b12cd5ff",
            "clean.test.mrg.gz": "1f13d2261a222694f33cf9e9d6015ad5555b55df0017afd73b7151fb80c2c284",
        },
        _NLTK + "treebank.zip",
        "10 % fragment of the Penn Treebank, (C) LDC 1995: non-commercial use only",
        _treebank(_bracketed, "clean.{}.mrg.gz"),
    ),
    "ud_english_ewt": Source(
        "ud_english_ewt",
        {
            "train.conllu.gz": "c3763263c67de3578d6e1b15ee46a6df6982c59b41ecc1cc9cde3f71e60f6495",
            "dev.conllu.gz": "8c30c08a0458536fb467fb409dee2b71c9a280fda185614b3e0ba259cca848e3",
            "test.conllu.gz": "193c04fd58cd547653e3f079f2d53eb628c95bbb57d3e1bb9838b9ce9be42856",
        },
        "https://github.com/UniversalDependencies/UD_English-EWT",
        "CC BY-SA 4.0",
    ),
    "ud_dutch": Source(
        "ud_dutch",
        {
            "train.conllu.gz": "265010ba9adae72908a88bd4106d26c9076da90c92851d073d6016a4188ce84a",
            "dev.conllu.gz": "72afa73ebfc25568725f462facd1f86c8c3afd99e03d386e79b75c0e54e2040c",
            "test.conllu.gz": "69ca2658f17fdc4faaeabbec4867d40fee9aa9c075bd618805e913e84c684767",
        },
        "https://github.com/UniversalDependencies/UD_Dutch-Alpino",
        "CC BY-SA 4.0",
    ),
    "ocr_letters": Source(
        "ocr_letters",
        {"ocr.npz": "6627ef5b6f95d90c3dc7d782876cd9b51eb454217f6f8634ad350f2c2daa0055"},
        "https://ai.stanford.edu/~btaskar/ocr/letter.data.gz",
        "none stated (public benchmark)",
        _ocr_letters,
    ),
    "graph_horses": Source(
        "graph_horses",
        {"horses_superpixels.npz": "84ad9cf6077de4a24fb66cc294418627f758e67c6a6e20ed8d31693b49bc3fa4"},
        "https://github.com/shenshutao/image_segmentation",
        "none stated (public benchmark)",
    ),
    "grid_horses64": Source(
        "grid_horses64",
        {"horses64.npz": "2140f232c4af5608643196adb52e7bfea6a632fe9c258481b9e129bc249d011b"},
        "https://github.com/shenshutao/image_segmentation",
        "none stated (public benchmark)",
    ),
    "prefab": Source(
        "align_prefab4",
        {
            "pairs.fa.gz": "751f4be5445787db5182950265ae39b9928cc0b81d44584f37a152c159e80ea6",
            "pairs.tsv.gz": "54df2461df65754a09cc439c31be69a5b4fd469236de13c58a44bb073eb3743a",
            "decoys.tsv.gz": "e5b269d01f1ac9d961867b1b790f78b23d298997f94ca90fb1108e4b07fd68f0",
            "seqs.fa.gz": "efb66f0eb85f5b8e1ada61ab45cdd25d3e0c6022759ac411378c453a286fa80a",
        },
        "https://github.com/ultrapotato/MergeAlign-Reimplementation-and-Benchmark",
        "none stated (freely distributed academic benchmark)",
    ),
    "oxbench": Source(
        "align_oxbench",
        {
            "pairs.fa.gz": "9471c1a78352394fae22161453d0450a79acc93be0df5297a154291daca515e9",
            "pairs.tsv.gz": "3eaf83b5fefb2f803b7653fd4aa43248c4cd3021b9ff96d949c7e16b3ffdb7d8",
            "decoys.tsv.gz": "e2dddc66519c238d339a8955f0f99a534ce64d0286d3089308f9178344761dcd",
            "seqs.fa.gz": "8cfc2adadf98b8fc383af8152b0ccc59525a9fc98b2e1feeb4ee250a3aba06c0",
        },
        "https://github.com/ultrapotato/MergeAlign-Reimplementation-and-Benchmark",
        "none stated (freely distributed academic benchmark)",
    ),
    "substitution_matrices": Source(
        "substitution_matrices",
        {
            "BLOSUM45.txt": "19a077d5060a94a6212ad609df303a240463873a69694e9f576c5762fbffdb09",
            "BLOSUM50.txt": "a152e30b8afcab42281ff8604bc51358be98253155fde62ae20707805a0d3d67",
            "BLOSUM62.txt": "85510d3846ee6d5f4778e425cf8daf6e0dbb889b306f2d13434e1254780efb40",
            "BLOSUM80.txt": "2e597176b8092808ba199cfc9d80dc8d657b5a3e5015dfb81d557285819ce187",
            "BLOSUM90.txt": "4de6ce225ed8ee84e041c4f63c2daf2f43aa86cdd1b120868074dc8495c7214f",
            "GONNET1992.txt": "270a4e32dc3b67d6f82928a4062b8fce6ff489ebef138889f87467ede721ce27",
            "PAM250.txt": "936cc5ef23e0262c5fdaf74d5d81f58848eb74cca0d5bef0f396d27b1689704e",
            "PAM30.txt": "8fc5688d1798e2326eab3719b9ee9299952a20c9434e4c5528bf4532e4586e63",
            "PAM70.txt": "d180e22d80f25ada412d6eb63070fe7227c9547c6673727291fd9b2d452946e5",
        },
        "https://github.com/biopython/biopython/archive/refs/tags/biopython-188.zip",
        "public domain (NCBI) and Biopython licence",
        _zip_members({f"{name}.txt": _MATRICES + name for name in _MATRIX_NAMES}),
    ),
    "clinc150": Source(
        "taxo_clinc150",
        {
            "taxonomy.tsv": "c76992b3a187a311ba424fe8d87f96a31a31b05fc9a5692ceda5330d2298a2cb",
            "docs.tsv.gz": "9e76bd813b8ae32e14335f482c82ce8a84023d1a6ec31cd1d432805ecd9be237",
        },
        "https://github.com/clinc/oos-eval/archive/828f8093932c8fe6ca7936c3d2e52903b1c523de.zip",
        "Creative Commons Attribution 3.0",
        _clinc150,
    ),
    "amazon_reviews": Source(
        "taxo_amazon",
        {
            "taxonomy.tsv": "6c8d582a457c3de896795657c77c749af75e27f0bfe63da635a7234c7def095a",
            "docs.tsv.gz": "353c24f0d5d5b6dd762ab0e80545a8cc1ca9c445ac7226d2dd2619c3228c2fca",
        },
        "https://github.com/Najmeh-sam/Hierarchical-text-classification-using-hiclass",
        "none stated; the texts belong to their authors: research use only",
    ),
    "imclef07a": Source(
        "taxo_imclef07a",
        {
            "taxonomy.tsv": "5cc72c53ebccc9ac7ec32e22c59a72b5a857c0be2152585503bf1d7d568ef883",
            "imclef07a.npz": "d57e753e9972091facca3f4ed7037620c9a9bc50f47b35b127a99b467531a3ed",
        },
        "https://github.com/EGiunchiglia/C-HMCNN",
        "none stated (public research benchmark)",
    ),
    "letter": Source(
        "mc_letter",
        {"letter-recognition.data.gz": "2b89f3602cf768d3c8355267d2f13f2417809e101fc2b5ceee10db19a60de6e2"},
        "https://raw.githubusercontent.com/davidgasquez/letter-recognition/"
        "fe3c4830d0003e53340bbf40a57c3573e021df64/letter-recognition.data",
        "none stated (UCI repository, public benchmark)",
        _letter,
    ),
    "usps": Source(
        "mc_usps",
        {"usps.npz": "0def46493a167481d1a462e18478759f6bc799ca83bec411b4ad70208f873c9c"},
        "https://github.com/niuers/Learning-From-Data-A-Short-Course",
        "none stated",
    ),
    "mnist": Source(
        "mc_mnist",
        {"mnist.npz": "c868f4cc70f1ec2961bd3b26437ea3a5d0e93cba4d95b336c6d475dd9dabb021"},
        "https://github.com/rasbt/mnist-pngs",
        "none stated with the data",
    ),
    "adult": Source(
        "linear_adult",
        {
            "a9a.train.svm.gz": "76b604b2c3f738783537bd3b32893eae66af54b8a41aee534fac1ecea45c1535",
            "a9a.test.svm.gz": "0c3135eb9b9d83a4fa007d6e1a3b719f029db78884dafd5a46a4d7eeb4c2b018",
        },
        "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
        "none stated (UCI repository, public benchmark)",
    ),
    "w8a": Source(
        "linear_w8a",
        {
            "w8a.train.svm.gz": "1a9b0d6220d0394707c0f584c552fa53b5dd1768ffbfd3e788e4e3bff77a66e1",
            "w8a.test.svm.gz": "cfb12902e59f058e0aa4dab32a5338085257f12b908a2cbe0cc3fbecb66ad583",
        },
        "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
        "none stated (public benchmark)",
    ),
    "rank_lightgbm": Source(
        "rank_lightgbm",
        {
            "train.letor.gz": "4b3594bdeb522855b4ebc961bec1d26a1b5f5e098020702a13d59f14df80d7b1",
            "test.letor.gz": "0f8bf67da9764307bee5923d4563b3e016439085863d7fe625431a05fab0d068",
        },
        "https://github.com/microsoft/LightGBM/archive/bae0b7ba953341a32b2a9c5c5c437a1b976f576f.zip",
        "MIT",
        _rank_lightgbm,
    ),
    "multilabel_yeast": Source(
        "multilabel_yeast",
        {
            "yeast.train.svm.gz": "804fa8e24ebd23ceccb6dea8dc630705cea0b89283048e09a5723babd6562eed",
            "yeast.test.svm.gz": "ba8d36bd28d452bc63f6ede621a1ceba4e46095e52fad030aa28307f7aeb0b03",
        },
        "https://github.com/scikit-multilearn/scikit-multilearn/tree/233c293adbc061982a590e50bbab394443cd7fd0/skmultilearn/"
        "data",
        "none stated (public benchmark)",
    ),
    "20newsgroups": Source(
        "text_20news",
        {
            "news.npz": "37229636bc27ecb3b71fd525a89213436d6724ac64d863f35b5c26e35a39eb8c",
            "classes.txt": "e639d15e21a5fef5fa90955acc42bbf428a9bd3a379cd3084b9595cb0066831b",
        },
        "https://github.com/YunomiXavia/20news-bydate",
        "none stated; public messages of their authors, of which only word counts are kept",
    ),
    "lost": Source(
        "pl_lost",
        {"pl_lost.npz": "5409c146f574e19f4c0f15a82ee7f57aaa0a94afa3d0f1a766707910e8defd27"},
        _PARTIAL_LABELS + "lost.mat",
        "none stated (public benchmark)",
    ),
    "msrcv2": Source(
        "pl_msrcv2",
        {"pl_msrcv2.npz": "a76ee9852d4b10797e1f2cf7f9b8a85676841287f3ae58eac8c972c1b868c6ad"},
        _PARTIAL_LABELS + "MSRCv2.mat",
        "none stated (public benchmark)",
    ),
    "robocup": Source(
        "robocup_sportscast",
        {
            "ambig.2001.tsv": "9b6624fc4b32ca276d50b0346407e7073c4d68a107e2b9d1de3adda76a717cde",
            "ambig.2002.tsv": "1ff6334b995aada4bba8bded42858c490cc5b134178ae58aeb6e0d45e98d01da",
            "ambig.2003.tsv": "7e17f3478bf7400f8d778d5ed5d5e584ead3f634674a6e6478d3a4e91e50eabf",
            "ambig.2004.tsv": "adb486b3b550a184424ce69abb9977dcf852b2b23db166c4e33d2e914cc95834",
            "gold.2001.tsv": "bc6a9c295cb55c9f60470482c438e9f15f80e0e69fc751ffe148ea52ab27ae8d",
            "gold.2002.tsv": "fc0d13c207cb3b112cf066b4fa81fbd5fa3b06a4b014490f5a75b1ffb09f5750",
            "gold.2003.tsv": "54a0c6a3843f55b90f8d4efb2f0c67cf6068c5766a66000a057de529167177b2",
            "gold.2004.tsv": "435ac49a72cc694af29aa8f5c8b39288da46910559faf7dfe3c85781b92a4932",
            "grammar.txt": "d6b2f28a0a75e5282fdc17e2d0e07fd8d71571a8d99ac7eb4209ab5f9c090703",
        },
        "https://www.cs.utexas.edu/~ml/clamp/sportscasting/",
        "none stated; distributed by the University of Texas at Austin for research",
    ),
    "geoquery": Source(
        "geoquery",
        {
            "geo.tsv": "1c8be675318b55d829561e951c4f4563074799aae0128cbb2819f96449ef6570",
            "geo.train.ambig1.tsv": "72424a4a2da23fdfa188c317aefd883edfbc780b7ce61b36dc6ce2c2b03b84ac",
            "geo.train.ambig2.tsv": "e593eecf088bd2dd6fa7d32663717b77d80c2bf060033f0781e992f8624f5a0c",
            "geo.train.ambig3.tsv": "90cab767c86152b9c72326ce59b6283371768d77c1013fd760cf9a5769689c54",
            "grammar.txt": "3337d49aa53fb4cb39a775038c19a371df07a08d27a9b88e173751a4023b9c77",
        },
        "https://www.cs.utexas.edu/~ml/nldata/geoquery.html",
        "GPL version 2",
    ),
}
