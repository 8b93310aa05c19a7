"""Letters that training never saw, in the strings of a prediction: named and counted."""

import warnings

import command_line
import pytest

import structsvm
from structsvm import AdviceWarning
from structsvm.tasks import SequenceAligner

OF_ABC = [("ABCA", "ABA"), ("BBCA", "BCA"), ("ABBC", "ABC")], [("ABCA", "AB-A"), ("BBCA", "B-CA"), ("ABBC", "A-BC")]
PREDICTIONS = {
    "predict": lambda model, x, z: model.predict([(x, z)]),
    "predict_kbest": lambda model, x, z: model.predict_kbest([(x, z)], 2),
    "decision_function": lambda model, x, z: model.decision_function([x], [[z]]),
    "rank": lambda model, x, z: model.rank(x, [z]),
}


def trained(**params):
    return SequenceAligner(**{"C": 0.1, "max_iter": 2, "random_state": 0} | params)


@pytest.mark.parametrize("call", PREDICTIONS.values(), ids=PREDICTIONS)
@pytest.mark.parametrize(("prior", "end"), [(None, "nothing is known of them"), ("auto", "what the prior says")])
def test_they_are_named_with_their_number(call, prior, end, tmp_path):
    model = trained(alphabet="ABCDE", prior=prior, mode="global").fit(*OF_ABC)
    model.save(tmp_path / "m")
    for one in (model, structsvm.load(tmp_path / "m")):
        with pytest.warns(AdviceWarning, match=f"training never saw: 'D' 3 times, 'E' 1 times; .*{end}") as said:
            call(one, "ABDdE", "aDb")
        assert len(said) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(one, "ABC", "cba")


def test_later_batches_and_trainings_add_theirs():
    model = trained(alphabet="ABCDE", mode="global", warm_start=True).fit(*OF_ABC)
    model.fit([("AD", "AD")], [("AD", "AD")])
    with pytest.warns(AdviceWarning, match="never saw: 'E' 1 times;"):
        model.predict([("ABCD", "DE")])
    with pytest.warns(AdviceWarning, match="never saw: 'A' 1 times;"):
        model.set_params(warm_start=False).fit([("EB", "EB")], [("EB", "EB")]).predict([("AB", "E")])


def test_letters_read_as_others_are_those():
    model = trained(alphabet="dna", mode="global").fit([("ACGT", "AGT")], [("ACGT", "A-GT")])
    with pytest.warns(AdviceWarning, match="never saw: 'N' 1 times, 'R' 2 times;"):
        model.predict([("ACGU", "RARUN")])


def test_costs_that_were_given_are_those_of_all_letters():
    aligner = SequenceAligner.from_costs("BLOSUM62", -11.0, -1.0)
    assert aligner.predict([("AWX", "AX")])


@pytest.mark.filterwarnings("default::structsvm.AdviceWarning")
def test_the_command_line_says_it_too(tmp_path):
    train, file, model = tmp_path / "train.fa", tmp_path / "test.fa", tmp_path / "m"
    train.write_text("".join(f">{k}\n{x}\n>{k}b\n{z}\n" for k, (x, z) in enumerate(OF_ABC[1])))
    file.write_text(">1\nABDA\n>2\nABA\n")
    command_line.run(tmp_path, "train", "alignment", train, "-m", model, "--alphabet", "ABCD", "-C", 1, "-q")
    for ranked in ((), ("-k", 2)):
        assert "training never saw: 'D' 1 times" in command_line.run(tmp_path, "predict", model, file, *ranked)[1]
