"""UDPipe 1's parser (Straka, Hajic and Strakova 2016), trained on gold tags."""

from __future__ import annotations

import tempfile

try:
    from ufal import udpipe
except ImportError:
    udpipe = None


def sentences_of(trees):
    reader, found = udpipe.InputFormat.newConlluInputFormat(), udpipe.Sentences()
    reader.setText("".join(tree.to_conllu() for tree in trees))
    sentence, error = udpipe.Sentence(), udpipe.ProcessingError()
    while reader.nextSentence(sentence, error):
        found.push_back(sentence)
        sentence = udpipe.Sentence()
    if error.occurred():
        raise ValueError(error.message)
    return found


def fit(trees, passes):
    """Train a parser with UDPipe's own settings but for the number of passes; returns what parses trees."""
    error = udpipe.ProcessingError()
    train, none = sentences_of(trees), udpipe.Sentences()
    model = udpipe.Trainer.train("morphodita_parsito", train, none, "none", "none", f"iterations={passes}", error)
    if error.occurred():
        raise ValueError(error.message)
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(model))
        file.flush()
        parser = udpipe.Model.load(file.name)

    def predict(trees):
        arcs = []
        for sentence in sentences_of(trees):
            parser.parse(sentence, "")
            arcs.append([(word.head, word.deprel) for word in list(sentence.words)[1:]])
        return arcs

    return predict
