"""The loss and the oracle that the parameters of `SequenceLabeler` ask for.

They are read as attributes: of the estimator, or of what the command line makes of its options.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Literal

import numpy as np

from structsvm._warnings import AdviceWarning, warn
from structsvm.features.encoder import FeatureEncoder
from structsvm.metrics._schemes import OUTSIDE, SCHEMES, scheme_name
from structsvm.oracles.greedy import GreedyOracle
from structsvm.oracles.semi_markov import SemiMarkovOracle
from structsvm.oracles.viterbi import ViterbiOracle
from structsvm.parameters import (
    COUNT,
    FLAG,
    NONE,
    POSITIVE,
    Interval,
    Kind,
    Options,
    ParameterGroup,
    declared,
    group_of,
    parameter,
)
from structsvm.solvers import Solver
from structsvm.structures.languages import Automaton, Rule
from structsvm.tasks.common.labels import label_costs
from structsvm.tasks.common.parameters import CLASS_WEIGHT, MARK, ByLabel, Training, check_settled
from structsvm.tasks.common.selection.choice import Choice, ChosenSolver
from structsvm.tasks.common.solver import (
    AUTO,
    CRITERIA,
    LIKELIHOODS,
    SOLVERS,
    is_auto,
    is_likelihood,
    is_log,
    is_open,
    solver_of,
)
from structsvm.tasks.sequence.constraints import compiled, constrained, is_scheme, under
from structsvm.tasks.sequence.segments import MOST_TOKENS, tags_of_types

if TYPE_CHECKING:
    import os
    from types import SimpleNamespace
    from typing import TypeAlias

    from numpy.typing import NDArray

    from structsvm.arrays import Integers
    from structsvm.oracles.chain import LabelChain
    from structsvm.tasks.common.model import TaskModel
    from structsvm.tasks.common.units import Units
    from structsvm.tasks.sequence.constraints import ConstraintsLike
    from structsvm.tasks.sequence.examples import LabeledSequences
    from structsvm.tasks.sequence.model import SequenceModel
    from structsvm.tasks.sequence.segments import Segments

    # The estimator, or what the command line makes of its options.
    LabelerParams: TypeAlias = "SequenceLabelerParameters | SimpleNamespace"

# Losses that "auto" chooses from, in the order of preference.
LOSSES = ("log", "hamming")
# Where there is nothing to choose by.
USUAL_LOSS, USUAL_SOLVER = "hamming", "larank"
# The one that is tried beside it: by "auto", and by default for attributes that are no chunks, if tokens times labels
# are few. Programs that parse names have such attributes by the hundred, many of them alike, and with the 1-norm some
# are left out. Attributes that templates make are no better for it.
RIVAL, FEW = "elastic_likelihood", 200_000
# Constraints of C: a number, or how it is chosen.
OF_OPEN_C = (POSITIVE, Options(AUTO, *CRITERIA, None))


@declared
class TokenFeatures(ParameterGroup):
    """How the attributes of tokens become features: the `features` of `SequenceLabeler`.

    Parameters
    ----------
    min_count : int, default=1
        Attributes seen fewer times in the training data are dropped.
    hash_bits : int, optional
        Hash attributes to 2**hash_bits numbers instead of keeping a vocabulary; with `min_count` 1 and no `bigrams`.
    bigrams : str or list of str, optional
        Names of attributes that are conjoined with pairs of neighbouring labels as well as with labels: "word" for
        ``{"word": "the"}``, or for the attribute string "word=the". In templates: lines such as ``B01:%x[0,0]``. Each
        has n_labels^2 weights.
    end : bool, default=False
        Exact inference only: whether the last label of a sequence has a weight of its own.
    possible_states : bool, default=True
        Whether each attribute has a weight for every label. False: only for those with which a token of the training
        data has it, as CRFsuite has it by default; with the 1-norm (``solver="sparse_likelihood"``) alone.

    Examples
    --------
    >>> from structsvm.tasks import SequenceLabeler, TokenFeatures
    >>> X, y = [["a", "b"], ["a", "c"]], [["A", "B"], ["A", "C"]]
    >>> labeler = SequenceLabeler(features=TokenFeatures(min_count=2), random_state=0).fit(X, y)
    >>> labeler.predict([["a"]])
    [['A']]
    """

    min_count: int = parameter(COUNT, default=1)
    hash_bits: int | None = parameter(Interval(Integral, 1, 30, closed="both"), NONE, default=None)
    bigrams: str | Sequence[str] | None = parameter(
        Kind((str, list, tuple), "a name or a list of names"), NONE, default=None
    )
    end: bool = parameter(FLAG, default=False)
    possible_states: bool = parameter(FLAG, default=True)


@declared
class SequenceLabelerParameters(Training):
    """The parameters of `SequenceLabeler`."""

    C: float | Literal["auto", "records", "tokens"] | None = parameter(*OF_OPEN_C, default=AUTO, kw_only=False)
    solver: str | Solver = parameter(
        Options(*SOLVERS, *LIKELIHOODS, AUTO), Kind(Solver, "a Solver"), default=USUAL_SOLVER
    )
    inference: str = parameter(Options("exact", "greedy"), default="exact")
    order: int | None = parameter(Interval(Integral, 0), NONE, default=None)
    templates: str | os.PathLike[str] | None = parameter(default=None)
    features: TokenFeatures | None = group_of(TokenFeatures)
    constraints: ConstraintsLike = parameter(
        Options(*SCHEMES, None, others=scheme_name),
        Kind((str, Rule, Automaton), "an expression, a rule or an Automaton"),
        Kind(tuple, "a tuple of three masks"),
        Kind(list, "a list of these"),
        default=None,
    )
    broken: str = parameter(Options("refuse", "repair", "predict"), default="refuse")
    segments: bool | int = parameter(FLAG, Interval(Integral, 2, MOST_TOKENS, closed="both"), default=False)
    loss: str = parameter(Options("auto", "hamming", "zero_one", "log"), default=AUTO)
    probability: bool = parameter(FLAG, default=True)
    class_weight: str | ByLabel | None = parameter(*CLASS_WEIGHT, default=None)
    unknown: object = parameter(*MARK, default=AUTO)


def features_of(params: LabelerParams) -> TokenFeatures:
    """The features that parameters ask for."""
    return params.features or TokenFeatures()


def has_possible_states(params: Mapping[str, object]) -> bool:
    """Whether attributes have weights for labels that no training token has them with."""
    features = params.get("features")
    return not isinstance(features, TokenFeatures) or features.possible_states


def sets_of(params: LabelerParams) -> tuple[str, ...]:
    """The sets of templates to choose from: the usual one, that for records, and that with the kinds of their words.

    That for records has no attributes of pairs of labels beside segments, whose phrases take their place, nor where
    features are hashed, each to n_labels^2 weights; nor are there kinds of words then.
    """
    has_pairs = not params.segments and features_of(params).hash_bits is None
    return ("rich", "records", "record-kinds") if has_pairs else ("rich", "record-tokens")


def leaves_templates(params: LabelerParams) -> bool:
    """Whether the templates are to be chosen: of words by default, of all columns with "auto"."""
    return params.templates is None or is_auto(params.templates)


def make_encoder(params: LabelerParams, templates: str | None = None) -> FeatureEncoder:
    """The encoder that parameters ask for; `templates` are those that were chosen, where the parameters leave them."""
    features = features_of(params)
    wanted = templates if leaves_templates(params) else params.templates
    return FeatureEncoder(wanted, features.min_count, features.hash_bits, features.bigrams)


def length_of(segments: bool | int) -> int | None:
    """The longest segments with weights of their own, if the parameter names a length."""
    return None if isinstance(segments, (bool, np.bool_)) else int(segments)


def possible_losses(params: LabelerParams) -> tuple[str, ...]:
    """The losses that the other parameters leave to choose from."""
    if params.loss != AUTO:
        return (params.loss,)
    if is_likelihood(params.solver):
        return ("log",)
    of_margin = (
        params.solver not in (USUAL_SOLVER, AUTO) or params.inference != "exact" or params.class_weight is not None
    )
    return (USUAL_LOSS,) if of_margin else LOSSES


def solver_for(params: dict[str, object], loss: str, choice: Choice | None = None) -> Solver:
    """The solver that parameters name for a loss; "auto" and the usual one: that, unless the other was chosen."""
    if params["solver"] in (AUTO, USUAL_SOLVER):
        chosen = None if choice is None or not is_log(loss) else choice.get(ChosenSolver)
        params = params | {"solver": USUAL_SOLVER if chosen is None else chosen.solver}
    return solver_of(params, loss)


def settled(params: LabelerParams) -> Iterator[tuple[str, object, object]]:
    """Yield the parameters beside which no solver is chosen: name, value, and the value that leaves it open."""
    for name, value, needed in (
        ("C", AUTO if is_open(params.C) else params.C, AUTO),
        ("loss", params.loss, AUTO),
        ("inference", params.inference, "exact"),
        ("class_weight", params.class_weight, None),
        ("possible_states", features_of(params).possible_states, True),
    ):
        if value != needed:
            yield name, value, needed


def check_open(params: LabelerParams) -> None:
    """Raise ValueError for parameters that leave nothing to choose from with solver="auto"."""
    for name, value, needed in settled(params) if is_auto(params.solver) else ():
        raise ValueError(
            f"solver='auto' is chosen on held-out sequences, together with C, and needs {name}={needed!r}; got "
            f"{value!r:.80}. Name a solver instead"
        )


def may_be_sparse(params: LabelerParams) -> bool:
    """Whether the solver is left open: "auto", or the usual one beside nothing that is settled."""
    is_usual = isinstance(params.solver, str) and params.solver == USUAL_SOLVER
    return is_auto(params.solver) or (is_usual and not any(settled(params)))


def loss_of(params: LabelerParams, before: TaskModel[LabeledSequences] | None = None) -> str:
    """The loss that training begins with: with "auto" that of the model to resume, and else the usual one."""
    losses = possible_losses(params)
    if before is not None and before.loss in losses:
        return before.loss
    return USUAL_LOSS if USUAL_LOSS in losses else losses[0]


def make_oracle(
    params: LabelerParams,
    encoder: FeatureEncoder,
    labels: Sequence[Hashable],
    label_ids: Integers,
    before: SequenceModel | None = None,
    segments: Segments | None = None,
    units: Units | None = None,
) -> LabelChain:
    """The oracle that parameters ask for; where features have units, there is an intercept."""
    loss = loss_of(params, before)
    n_features = encoder.n_features + (units is not None)
    if encoder.n_features == 0:
        raise ValueError(
            f"no features are left: none occurs min_count={encoder.min_count} times"
            if encoder.min_count > 1
            else "the tokens have no features at all"
        )
    costs = costs_of(params, labels, label_ids, loss)
    if segments is not None:
        oracle = segment_oracle(labels, n_features, segments, loss, costs)
        if params.constraints is None or is_scheme(params.constraints):
            return oracle
        return under(oracle, params.constraints, labels, segments.names_of(labels))
    allowed = compiled(params.constraints, labels)
    if is_scheme(params.constraints) and params.broken == "predict":
        warn_of_scheme(params, labels)
    transitions, first, last = allowed.masks
    masks = {"allowed_transitions": transitions, "allowed_first": first, "allowed_last": last}
    if params.inference == "greedy":
        check_greedy(params, loss)
        order = greedy_order(params, encoder, needs_automaton=allowed.language is not None or bool(allowed.rules))
        return GreedyOracle(
            len(labels), n_features, n_bigrams=encoder.n_bigrams, order=order, label_costs=costs, **masks
        )
    return ViterbiOracle(
        len(labels),
        n_features,
        n_bigrams=encoder.n_bigrams,
        order=exact_order(params, encoder),
        end=features_of(params).end,
        loss=loss,
        label_costs=costs,
        language=allowed.language,
        rules=allowed.rules,
        **masks,
    )


def costs_of(
    params: LabelerParams, labels: Sequence[Hashable], label_ids: Integers, loss: str
) -> NDArray[np.float64] | None:
    """The cost of each label; ValueError where the loss has none."""
    costs = label_costs(params.class_weight, labels, label_ids)
    if loss == "zero_one" and costs is not None:
        raise ValueError("class_weight has no meaning with loss='zero_one', which counts sequences; use loss='hamming'")
    if loss == "log" and costs is not None:
        raise ValueError(
            "class_weight has no meaning with loss='log', which has no costs; use sample_weight, or a margin"
        )
    return costs


def greedy_order(params: LabelerParams, encoder: FeatureEncoder, *, needs_automaton: bool) -> int:
    """The order of greedy inference; ValueError for constraints that are no masks."""
    if needs_automaton:
        raise ValueError(
            "inference='greedy' takes constraints that speak of neighbouring labels alone (a scheme, masks), and "
            "these need an automaton: use inference='exact'"
        )
    return (2 if encoder.template_bigram else 0) if params.order is None else params.order


def exact_order(params: LabelerParams, encoder: FeatureEncoder) -> int:
    """The order of exact inference; ValueError for templates without transitions, and another order than 1 or 2."""
    order = 1 if params.order is None else params.order
    if not encoder.template_bigram:
        raise ValueError(
            "the templates have no line that begins with 'B' (Wapiti: 'b' or '*'), and so ask for labels without "
            "transition weights; inference='exact' is about transitions: add the line B, or use inference='greedy' "
            "with order=0"
        )
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2 with inference='exact', got {order}; inference='greedy' takes any")
    return order


def warn_of_scheme(params: LabelerParams, labels: Sequence[Hashable]) -> None:
    """Warn of labels with which a scheme leaves no chunk to predict."""
    scheme = constrained(str(params.constraints), labels)
    parts = [part for part in map(scheme.part, labels) if part is not None and part != OUTSIDE]
    if parts and not any(scheme.allows(part, OUTSIDE) for part in parts):
        warn(
            f"constraints={params.constraints!r}: none of the labels {labels!r:.200} may end a chunk, so that no chunk "
            "can be predicted; is the scheme the one of the data?",
            AdviceWarning,
        )


def check_greedy(params: LabelerParams, loss: str) -> None:
    """Raise ValueError, naming it, for a parameter that needs exact inference."""
    for name, value, default in (("loss", loss, "hamming"), ("end", features_of(params).end, False)):
        if value != default:
            raise ValueError(f"{name}={value!r} needs inference='exact'")


def check_leaves_zeros(solver: Solver) -> None:
    """Raise ValueError for a solver that trains all weights."""
    if not solver.inner.leaves_zeros:
        raise ValueError(
            "possible_states=False needs solver='sparse_likelihood' or 'elastic_likelihood', or a SparseLikelihood or "
            f"ElasticLikelihood object, which leave weights at 0; got {type(solver.inner).__name__}"
        )


def segment_oracle(
    labels: Sequence[Hashable], n_features: int, segments: Segments, loss: str, costs: NDArray[np.float64] | None
) -> SemiMarkovOracle:
    """The oracle of whole segments."""
    phrases = segments.phrases
    return SemiMarkovOracle(
        len(labels),
        n_features,
        tags_of_types(labels),
        max_length=phrases.max_length,
        phrase_starts=phrases.starts,
        loss=loss,
        label_costs=costs,
    )


def check_sharded(params: LabelerParams, **more: object) -> None:
    """Raise ValueError, naming it, for a parameter that training on shards has no use for; `more` must be None."""
    for name, value, only in (
        ("segments", params.segments, False),
        ("bigrams", features_of(params).bigrams, None),
        *((name, value, None) for name, value in more.items()),
    ):
        if value is not only:
            raise ValueError(f"shards need {name}={only}, got {value!r:.80}")
    if params.broken == "repair":
        raise ValueError("shards need broken='refuse' or 'predict': their labels are as they were encoded")


def check_segments(params: LabelerParams) -> None:
    """Raise ValueError, naming it, for a parameter that segments have no use for."""
    has_rules = params.constraints is not None and not is_scheme(params.constraints)
    segments = f"segments={params.segments}"
    for name, value, may in (
        ("inference", params.inference, ("exact",)),
        ("order", params.order, (None, 1)),
        ("end", features_of(params).end, (False,)),
        ("bigrams", features_of(params).bigrams, (None,)),
        ("loss", params.loss, ("auto", "hamming", "log")),
        ("broken", params.broken, ("refuse", "repair", *(["predict"] if has_rules else []))),
    ):
        if value not in may:
            raise ValueError(f"{segments} needs {name} to be {' or '.join(map(repr, may))}, got {value!r:.80}")
    if isinstance(params.constraints, tuple):
        raise ValueError(
            f"{segments} has masks of its own: constraints must be None, a scheme, rules, expressions, "
            "an Automaton, or a list of these and of masks"
        )


def check_unchanged(params: LabelerParams, model: SequenceModel, label_ids: Integers) -> None:
    """Raise ValueError, naming the parameter, if one that settles features or structure differs from the model's."""
    its = model.encoder.templates
    encoder = make_encoder(params, its if its in sets_of(params) else None)
    oracle = make_oracle(params, model.encoder, model.labels, label_ids, model, model.segments)
    segments: bool | int = model.segments is not None
    if model.segments is not None and length_of(params.segments) is not None:
        segments = model.segments.phrases.max_length
    check_settled([
        ("segments", params.segments, segments),
        ("templates", encoder.templates, its),
        ("min_count", encoder.min_count, model.encoder.min_count),
        ("hash_bits", encoder.hash_bits, model.encoder.hash_bits),
        ("bigrams", encoder.bigrams, model.encoder.bigrams),
        ("inference", type(oracle), type(model.oracle)),
        ("order", oracle.order, model.oracle.order),
        ("end", oracle.end, model.oracle.end),
        ("possible_states", features_of(params).possible_states, has_possible_states(model.params)),
        ("class_weight", oracle.label_costs, model.oracle.label_costs),
        ("loss", oracle.loss_name, model.oracle.loss_name),
        *(("constraints", mine, its) for mine, its in zip(oracle.allowed, model.oracle.allowed)),
        ("constraints", (oracle.language, oracle.rules), (model.oracle.language, model.oracle.rules)),
    ])  # fmt: skip
