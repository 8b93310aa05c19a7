"""EVALB's counts, by its own steps on lists of brackets; reads bracketed text by itself."""


def read(text):
    """(words, tags, brackets) of one tree; brackets are [label, begin, end] of the nodes above the tags."""
    words, tags, brackets, open_ones = [], [], [], []
    pieces = text.replace("(", " ( ").replace(")", " ) ").split()
    k = 0
    while k < len(pieces):
        if pieces[k] == "(":
            label = pieces[k + 1] if pieces[k + 1] not in "()" else ""
            k += 1 if label else 0
            if pieces[k + 1] not in "()" and pieces[k + 2] == ")":
                words.append(pieces[k + 1])
                tags.append(label)
                k += 2
            else:
                open_ones.append([label, len(words), None])
                brackets.append(open_ones[-1])
        else:
            open_ones.pop()[2] = len(words)
        k += 1
    return words, tags, brackets


DELETE = ["TOP", "ROOT", "S1", "", "-NONE-", ",", ":", "``", "''", ".", "?", "!"]


def massage(words, tags, brackets):
    """Delete words by tag, renumber the brackets, and drop the deleted and the empty ones."""
    new, kept = [], []
    for word, tag in zip(words, tags):
        new.append(len(kept))
        if tag not in DELETE:
            kept.append((word, tag))
    new.append(len(kept))
    result = []
    for label, begin, end in brackets:
        if label in DELETE or new[begin] == new[end]:
            continue
        result.append(("ADVP" if label == "PRT" else label, new[begin], new[end]))
    return kept, result


def evalb(golds, tests):
    """(recall, precision, f, complete, tagging) as fractions over all sentences."""
    match = n_gold = n_test = complete = n_tags = n_words = 0
    for gold, test in zip(golds, tests):
        gold_words, gold_brackets = massage(*read(gold))
        test_words, test_brackets = massage(*read(test))
        assert [w for w, _ in gold_words] == [w for w, _ in test_words]
        left = list(test_brackets)
        here = 0
        for bracket in gold_brackets:
            for k, other in enumerate(left):
                if other == bracket:
                    del left[k]
                    here += 1
                    break
        match += here
        n_gold += len(gold_brackets)
        n_test += len(test_brackets)
        complete += here == len(gold_brackets) == len(test_brackets)
        for (_, a), (_, b) in zip(gold_words, test_words):
            n_words += 1
            n_tags += a == b
    recall, precision = match / n_gold if n_gold else 0.0, match / n_test if n_test else 0.0
    f = 2 * recall * precision / (recall + precision) if match else 0.0
    return recall, precision, f, complete / len(golds), n_tags / n_words if n_words else 0.0
