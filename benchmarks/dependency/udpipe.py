"""UDPipe 1's parser (Straka, Hajic and Strakova 2016), trained on gold tags."""

from __future__ import annotations

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


def fit(trees, path, options="iterations=10"):
    """Train a parser with UDPipe's own settings and these; returns what parses trees. `path` is a scratch file."""
    error = udpipe.ProcessingError()
    train = sentences_of(trees)
    model = udpipe.Trainer.train("morphodita_parsito", train, udpipe.Sentences(), "none", "none", options, error)
    if error.occurred():
        raise ValueError(error.message)
    path.write_bytes(bytes(model))
    parser = udpipe.Model.load(str(path))

    def predict(trees):
        arcs = []
        for sentence in sentences_of(trees):
            parser.parse(sentence, "")
            arcs.append([(word.head, word.deprel) for word in list(sentence.words)[1:]])
        return arcs

    return predict
