"""Names that training has not seen, in the conventions of the field: copied whole, or beside the type of their kind."""

import copy
import itertools

import pytest

import structsvm
from structsvm.model_file import ModelFileError, read_model, write_model
from structsvm.tasks import Hybrid, SemanticParser
from structsvm.tasks.semantics.growth import same

VERBS = ("open", "close", "show")


def taught(names, said=None, **params):
    """A parser of meanings ``open(NAME)``; sentences say the name, or what `said` makes of it."""
    X = [f"{verb} {said(name) if said else name}" for verb in VERBS for name in names]
    y = [f"{verb}({name})" for verb in VERBS for name in names]
    parser = SemanticParser(random_state=0, **params).fit(X, y)
    assert parser.score(X, y) == 1.0
    return parser


def bare(name):
    """The letters of a constant up to its colon, without quotation marks."""
    return name.strip("'\"").split(":")[0].replace("_", " ")


WHOLE = {
    "files": (["report.txt", "notes.txt", "todo.txt", "photo.jpg", "cat.jpg", "list.txt", "dog.jpg"], "main.py"),
    "mails": (["bob@corp.com", "ann@corp.com", "eve@corp.com", "joe@home.org", "sue@home.org"], "kim@corp.com"),
    "paths": (["etc/hosts", "etc/passwd", "etc/fstab", "var/log", "var/mail"], "etc/group"),
    "absolute paths": (["/etc/hosts", "/etc/passwd", "/etc/fstab", "/var/log", "/var/mail"], "/etc/group"),
    "modules": (["os.path", "os.name", "os.sep", "sys.path", "sys.argv", "sys.exit"], "os.uname"),
    "initials": (["J.Smith", "J.Jones", "J.Brown", "A.Smith", "A.Jones", "A.Brown"], "J.Miller"),
    "hosts": (["www.bbc.com", "www.cnn.com", "www.sky.com", "www.taz.de", "www.faz.de"], "www.nyt.com"),
    "addresses": (
        [f"https://{name}.org/index.html" for name in ("bbc", "cnn", "sky", "taz")],
        "https://nyt.org/a.html",
    ),
    "units": (["3.5kg", "2.5kg", "1.5kg", "4.5kg", "7.5kg", "6.5kg"], "8.5kg"),
    "times": (["6:45pm", "7:45pm", "6:30pm", "8:30pm", "9:45pm", "5:30pm"], "3:45pm"),
    "versions": (["v1.2", "v1.3", "v1.4", "v2.2", "v2.3", "v2.4"], "v3.1"),
    "dates": (["2024-05-01", "2024-05-02", "2024-06-11", "2023-01-30"], "2025-12-24"),
    "items": (["wd:Q42", "wd:Q64", "wd:Q90", "wd:Q84", "wd:Q60"], "wd:Q220"),
    "some files": (["a1.txt", "b2.txt", "c3.txt", "d4.txt", "e5.txt", "Rome", "Oslo"], "Ulm"),
    "tags": (["#rome", "#oslo", "#ulm", "#kiel", "#bonn"], "#jena"),
    "variables": (["?rome", "?oslo", "?ulm", "?kiel", "?bonn"], "?jena"),
}


@pytest.mark.parametrize("convention", WHOLE)
def test_names_that_sentences_write_whole_are_copied_whole(convention):
    names, new = WHOLE[convention]
    parser = taught(names)
    assert parser.model_.hybrid.units.typed == frozenset()
    assert parser.predict([f"{verb} {name}" for verb in VERBS for name in (new, names[0])]) == [
        [f"{verb}({name})"] for verb in VERBS for name in (new, names[0])
    ]


TYPED = {
    "behind": "{}:city",
    "a letter": "{}:c",
    "underscored": "{}:_ci",
    "quoted": "'{}:city'",
    "before": "city:{}",
    "Freebase": "/en/{}",
    "dotted": "fb:en.{}",
    "key and value": "city={}",
    "address": "<http://x.org/city/{}>",
}


@pytest.mark.parametrize("convention", TYPED)
def test_names_that_sentences_write_without_their_type_are_copied_with_it(convention):
    form = TYPED[convention]
    cities = ["oslo", "rome", "ulm", "bonn", "kiel", "jena"]
    said = {form.format(city): city for city in cities}
    parser = taught([*said], said.get)
    assert len(parser.model_.hybrid.units.typed) == 1
    assert parser.predict(["close graz", "show oslo"]) == [
        [f"close({form.format('graz')})"],
        [f"show({form.format('oslo')})"],
    ]
    # A name that is written with its type does not get it twice, known or new.
    whole = [form.format(city).strip("'") for city in ("graz", "oslo")]
    assert parser.predict([f"open {name}" for name in whole]) == [
        [f"open({form.format(city)})"] for city in ("graz", "oslo")
    ]


@pytest.mark.parametrize("joint", "_-")
def test_no_symbols_are_made_up_of_words_and_a_joint(joint):
    """Words joined in a symbol say no type."""
    acts = {"weather": f"get{joint}weather", "news": f"get{joint}news", "time": f"get{joint}time"}
    X = [f"{a} {act} {b}" for a in ("show", "tell me") for act in acts for b in ("please", "now", "today")]
    y = [f"do({symbol})" for _ in "ab" for symbol in acts.values() for _ in "abc"]
    parser = SemanticParser(random_state=0).fit(X, y)
    assert parser.model_.hybrid.units.typed == frozenset()
    found = parser.predict(["show banana please", "tell me jokes now"])
    assert {meaning for best in found for meaning in best} <= {*y}


def test_typed_names_of_several_words_are_copied_whole():
    cities = ["Oslo", "Rome", "Ulm", "Bonn", "Kiel", "Bad Ems"]
    parser = taught([f"'{city}:city'" for city in cities], lambda name: f"the trip to {bare(name)} today")
    assert parser.model_.hybrid.lexicon.looks
    for said in ("New York", "New York:city", "Bad Ems:city"):
        assert parser.predict([f"open the trip to {said} today"]) == [[f"open('{bare(said)}:city')"]]


def test_names_with_their_type_are_copied_where_looks_say_what_is_a_name():
    """Sentences write ``bbc.com``, which looks like a name, and never ``http://bbc.com``, which does not."""
    sites = ["bbc.com", "cnn.com", "taz.de", "faz.de", "sky.com"]
    parser = taught([f"http://{site}" for site in sites], lambda name: name.removeprefix("http://"))
    assert parser.model_.hybrid.lexicon.looks
    for said in ("nyt.com", "http://nyt.com"):
        assert parser.predict([f"close {said}"]) == [["close(http://nyt.com)"]]


@pytest.mark.parametrize("form", ["{}", "{}@corp.com"])
def test_names_are_copied_without_their_possessive_ending(form):
    names = [form.format(name) for name in ("ann", "bob", "eve", "joe")]
    parser = taught(names, lambda name: f"{name}'s calendar")
    for name in (form.format("kim"), names[0]):
        assert parser.predict([f"close {name}'s calendar"]) == [[f"close({name})"]]


def test_quoted_names_keep_an_apostrophe():
    names = ["'Wendy's'", "'Denny's'", "'Subway'", "'Nando's'"]
    parser = taught(names, lambda name: name[1:-1])
    assert parser.predict(["open Arby's", "close Wendy's"]) == [["open('Arby's')"], ["close('Wendy's')"]]


def test_a_name_with_another_type_keeps_it():
    parser = taught([f"{city}:city" for city in ("oslo", "rome", "ulm", "bonn", "kiel")], bare)
    assert parser.predict(["close graz:station"]) == [["close(graz:station)"]]


@pytest.mark.parametrize("form", ["{}:_ci", "en.ci.{}"])
def test_types_say_which_names_fill_a_slot(form, tmp_path):
    cities, airlines = ["oslo", "rome", "ulm", "bonn", "kiel", "new_york"], ["aa", "dl", "klm", "ua", "lh", "twa"]
    of_airline = form.replace("ci", "al")
    typed = {name: form.format(name) for name in cities} | {name: of_airline.format(name) for name in airlines}
    X = [f"flights to {city.replace('_', ' ')} on {airline}" for city in cities for airline in airlines[:4]]
    y = [f"and(to($0,{typed[city]}),on($0,{typed[airline]}))" for city in cities for airline in airlines[:4]]
    X += [f"flights by {airline}" for airline in airlines]
    y += [f"on($0,{typed[airline]})" for airline in airlines]
    parser = SemanticParser(random_state=0).fit(X, y)
    X_new = ["flights to jena on swiss", "flights to bad ems on klm"]
    jena, bad_ems, swiss = form.format("jena"), form.format("bad_ems"), of_airline.format("swiss")
    y_new = [f"and(to($0,{jena}),on($0,{swiss}))", f"and(to($0,{bad_ems}),on($0,{typed['klm']}))"]
    assert parser.score(X, y) == 1.0 and parser.predict(X_new) == [[meaning] for meaning in y_new]
    # A token with a blank is joined like words.
    assert parser.predict([["flights", "to", "bad ems", "on", "klm"]]) == [[y_new[1]]]
    parser.save(tmp_path / "m")
    loaded = structsvm.load(tmp_path / "m")
    assert loaded.model_.hybrid.units.typed == parser.model_.hybrid.units.typed
    assert loaded.predict_kbest(X_new) == parser.predict_kbest(X_new)
    loaded.partial_fit(X[:3], y[:3])
    assert loaded.predict(X_new) == [[meaning] for meaning in y_new]
    file = read_model(tmp_path / "m")
    (key, *_) = (key for key in file.meta["spelt"] if "(" not in key)
    wrong = [{"spelt": file.meta["spelt"] | {other: [5.0, 5.0]}} for other in (" :x", "", "oslo:_ci", " :")]
    wrong += [{"spelt": file.meta["spelt"] | {key: pair}} for pair in ([5.0, 4.0], [-1.0, 2.0], 3.0, [1.0])]
    for stored in wrong:
        write_model(tmp_path / "d", "semantics", file.meta | stored, file.arrays)
        with pytest.raises(ModelFileError, match="not a sound semantics model"):
            structsvm.load(tmp_path / "d")
    write_model(tmp_path / "d", "semantics", file.meta | {"typed": None}, file.arrays)
    assert structsvm.load(tmp_path / "d").predict(X_new) == [[meaning] for meaning in y_new]
    write_model(tmp_path / "d", "semantics", file.meta | {"typed": [":", False]}, file.arrays)
    with pytest.raises(ModelFileError, match="earlier version, which stored types of names differently; train the mod"):
        structsvm.load(tmp_path / "d")


def test_a_lexicon_names_a_type_that_no_name_has():
    names = [f"{city}:city" for city in ("oslo", "rome", "ulm", "bonn", "kiel")]
    with pytest.raises(ValueError, match=r"'gare', which is like no name in the meanings: their types are '_:city'"):
        taught(names, bare, method=Hybrid(lexicon={"gare": "paris_nord:station"}))
    parser = taught(names, bare, method=Hybrid(lexicon={"the big one": "graz:city"}))
    assert parser.predict(["close the big one"]) == [["close(graz:city)"]]


@pytest.mark.parametrize("cut", [3, 6])
def test_types_are_found_in_later_portions_too(cut):
    """The first three sentences write whole constants, the others say names without their types."""
    cities = ["oslo", "rome", "ulm", "bonn", "kiel", "jena", "melk", "wels", "steyr", "enns"]
    X = [f"flights to {city}:city" for city in cities[:3]]
    X += [f"{kind} to {city}" for kind in ("flights", "trains") for city in cities]
    y = [f"fly({city}:city)" for city in cities[:3]]
    y += [f"{verb}({city}:city)" for verb in ("fly", "train") for city in cities]
    parser = SemanticParser(random_state=0)
    for a, b in [(0, cut)] + [(cut, len(X))] * 4:
        parser.partial_fit(X[a:b], y[a:b])
    assert parser.model_.hybrid.units.typed == {("", ":city")}
    assert parser.predict(["flights to graz", "trains to oslo"]) == [["fly(graz:city)"], ["train(oslo:city)"]]


def test_types_that_later_portions_refute_are_given_up():
    files = [f"{name}.txt" for name in ("report", "notes", "todo", "list", "main", "draft")]
    first, later = [f"open {name[:-4]}" for name in files[:3]], [f"{verb} {name}" for verb in VERBS for name in files]
    parser = SemanticParser(random_state=0).partial_fit(first, [f"open({name})" for name in files[:3]])
    assert parser.model_.hybrid.units.typed == {("", ".txt")}
    for _ in range(4):
        parser.partial_fit(later, [f"{verb}({name})" for verb in VERBS for name in files])
    assert parser.model_.hybrid.units.typed == frozenset()
    assert parser.predict(["open letter.md", "show report.txt"]) == [["open(letter.md)"], ["show(report.txt)"]]


def test_units_with_other_types_are_not_the_same():
    hybrid = taught([f"{city}:city" for city in ("oslo", "rome", "ulm", "bonn", "kiel")], bare).model_.hybrid
    other = hybrid.with_spelt(hybrid.spelt)
    assert same(hybrid, other)
    other.units = copy.copy(hybrid.units)
    other.units.typed = frozenset()
    assert not same(hybrid, other)


def test_copies_are_as_long_as_names_of_their_kind():
    """A kind with a long name does not let names of other kinds be long."""
    cities = ["oslo", "rome", "ulm", "bonn", "kiel", "jena"]
    titles = ["the old man and the sea", "dune", "emma", "ulysses", "dracula", "it"]
    X = [f"flights to {city}" for city in cities] + [f"who wrote {title}" for title in titles]
    y = [f"fly({city})" for city in cities] + [f"wrote('{title}')" for title in titles]
    hybrid = SemanticParser(random_state=0).fit(X, y).model_.hybrid
    copies = hybrid.copies(["zen", "of", "motor", "bike", "care", "now"])
    longest = {kind: max(copy.end - copy.begin for copy in of_kind) for kind, of_kind in by_kind(copies).items()}
    of_titles = {hybrid.units.kinds[u] for u, unit in enumerate(hybrid.units.units) if unit.name == "'dune'"}
    assert {kind: 6 if kind in of_titles else 3 for kind in longest} == longest and len(longest) == 2


def by_kind(copies):
    found = {}
    for kind, own in itertools.groupby(sorted(copies, key=lambda copy: copy.kind), key=lambda copy: copy.kind):
        found[kind] = [*own]
    return found
