"""Parsers that are programs of their own: BLLIP, the Berkeley parser, the Stanford parser and discodop.

Each is found by an environment variable, and left out without it: BLLIP_PARSER is the folder `first-stage` of its
source, with its programs built; BERKELEY_PARSER and STANFORD_PARSER are Java class paths; DISCODOP_PARSER is the folder
of its source, built in place by this Python, which has what its requirements.txt names.

``train(trees, held_out, folder)`` learns from lines of bracketed trees, ``parse(sentences, tagged, folder)`` parses
lists of (word, tag), whose tags are given to the program if `tagged`. Both return a `Command`; parses are its output.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from common.measure import run_command

# One thread, whatever the machine has.
JAVA = ("java", "-XX:ActiveProcessorCount=1", "-XX:+UseSerialGC", "-Xmx3g", "-cp")
LONGEST = 200  # words
CYCLES = 4  # cycles of splitting and merging: the best of 2, 3 and 4 on wsj_0140-0159


def found():
    """The programs that are installed."""
    programs = (Bllip, Stanford, Berkeley, Discodop)
    return [program(os.environ[program.variable]) for program in programs if program.variable in os.environ]


def write(path, lines):
    """Write the lines, and return the path."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


class Bllip:
    """Its first stage (Charniak 2000), without the reranker, trained as its TRAIN/README.rst says."""

    name, variable = "BLLIP, first stage", "BLLIP_PARSER"

    def __init__(self, place):
        self.place = Path(place)

    def train(self, trees, held_out, folder):
        """The weights of the back-off are those that suit the trees held out."""
        shutil.copytree(self.place / "DATA" / "EN", folder / "bllip")
        files = write(folder / "bllip.train", trees), write(folder / "bllip.held", held_out)
        return run_command([self.place / "TRAIN" / "trainParser", "-parser", folder / "bllip", *files])

    def parse(self, sentences, tagged, folder):
        lines = ("<s> {} </s>".format(" ".join(word for word, _ in sentence)) for sentence in sentences)
        options = ["-K", f"-l{LONGEST}"]
        if tagged:
            tags = ("".join(f"{word} {tag}\n" for word, tag in sentence) + "---" for sentence in sentences)
            options.append(f"-E{write(folder / 'bllip.tags', tags)}")
        text = write(folder / "bllip.text", lines)
        return run_command([self.place / "PARSE" / "parseIt", *options, f"{folder}/bllip/", text])


class Berkeley:
    """Hidden subsymbols by splitting and merging (Petrov and others 2006), its own settings but for the cycles."""

    name, variable = f"Berkeley parser, {CYCLES} cycles", "BERKELEY_PARSER"

    def __init__(self, place):
        self.command = [*JAVA, place]

    def train(self, trees, held_out, folder):
        source = write(folder / "berkeley.train", trees + held_out)
        options = ["-path", source, "-treebank", "SINGLEFILE", "-SMcycles", CYCLES, "-out", folder / "berkeley.gr"]
        return run_command([*self.command, "edu.berkeley.nlp.PCFGLA.GrammarTrainer", *options])

    def parse(self, sentences, tagged, folder):
        if tagged:
            lines = ("".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in sentences)
        else:
            lines = (" ".join(word for word, _ in sentence) for sentence in sentences)
        options = ["-gr", folder / "berkeley.gr", "-inputFile", write(folder / "berkeley.text", lines)]
        options += ["-useGoldPOS"] if tagged else []
        return run_command([*self.command, "edu.berkeley.nlp.PCFGLA.BerkeleyParser", *options])


class Stanford:
    """An unlexicalised grammar (Klein and Manning 2003), options of its makeSerialized.csh for WSJ."""

    name, variable = "Stanford parser, goodPCFG", "STANFORD_PARSER"

    def __init__(self, place):
        self.command = [*JAVA, place, "edu.stanford.nlp.parser.lexparser.LexicalizedParser"]

    def train(self, trees, held_out, folder):
        source = write(folder / "stanford.train", trees + held_out)
        model = folder / "stanford.ser.gz"
        return run_command([*self.command, "-goodPCFG", "-saveToSerializedFile", model, "-train", source])

    def parse(self, sentences, tagged, folder):
        options = ["-tokenized", "-sentences", "newline", "-outputFormat", "oneline", "-maxLength", LONGEST]
        if tagged:
            tokenizer = ("-tokenizerFactory", "edu.stanford.nlp.process.WhitespaceTokenizer")
            options += ["-tagSeparator", "_", *tokenizer, "-tokenizerMethod", "newCoreLabelTokenizerFactory"]
        lines = (" ".join(f"{word}_{tag}" if tagged else word for word, tag in sentence) for sentence in sentences)
        return run_command(
            [*self.command, *options, folder / "stanford.ser.gz", write(folder / "stanford.text", lines)]
        )


class Discodop:
    """Trees of fragments that recur in the trees, Double-DOP (Sangati and Zuidema 2011), after a PCFG.

    Settings of its sample.prm, with what its docs/params.rst names for WSJ: split symbols `km2003wsj` and unknown words
    by model 6 are better than `wsj` and model 4 on the last hundred training trees, trained on the first 3000.
    """

    name, variable = "discodop, Double-DOP", "DISCODOP_PARSER"

    def __init__(self, place):
        self.rules = Path(place) / "ptb.headrules"
        self.command = ["env", f"PYTHONPATH={place}", sys.executable, Path(place) / "bin" / "discodop"]

    def train(self, trees, held_out, folder):
        corpus = {"path": str(write(folder / "discodop.train", trees + held_out)), "numsents": len(trees + held_out)}
        fine = {"prune": "coarse", "k": 1e-5, "dop": "doubledop", "m": 1000, "estimator": "rfe", "objective": "mpp"}
        settings = {
            "stages": [{"name": "coarse", "mode": "pcfg"}, {"name": "fine", "mode": "pcfg"} | fine],
            "corpusfmt": "bracket",
            "traincorpus": corpus | {"maxwords": LONGEST},
            "testcorpus": {},
            "removeempty": True,
            "functions": "remove",
            "ensureroot": "ROOT",
            "transformations": ("km2003wsj",),
            "postagging": {"method": "unknownword", "model": "6", "unknownthreshold": 1, "openclassthreshold": 50},
            "binarization": {"headrules": str(self.rules), "h": 1, "v": 1, "markhead": True},
        }
        lines = (f"{name}={value!r}," for name, value in settings.items())
        options = [write(folder / "discodop.prm", lines), folder / "discodop"]
        return run_command([*self.command, "grammar", "param", *options])

    def parse(self, sentences, tagged, folder):
        lines = (" ".join(f"{word}/{tag}" if tagged else word for word, tag in sentence) for sentence in sentences)
        options = ["--fmt=bracket"] + (["--tags"] if tagged else [])
        text = write(folder / "discodop.text", lines)
        return run_command([*self.command, "parser", *options, folder / "discodop", text])
