"""A wrong number is replaced by the right one, and the model goes on from there."""

from sixfold.decoding.options import Hypothesis
from sixfold.translation.correction import MAX_LOSS, correct_numbers
from sixfold.translation.joint_search import search_jointly
from sixfold.translation.options import TranslateOptions


class Letters:
    """A direction whose tokens are characters, and whose model ends every prefix in the same way."""

    def __init__(self, ending, loss=0.0):
        self.languages, self.max_target_tokens = ("zh", "en"), 200
        self.ending, self.loss, self.prefixes, self.engine = ending, loss, [], self

    def encode_target(self, text):
        return [ord(char) for char in text]

    def decode_target(self, tokens):
        return "".join(map(chr, tokens))

    def encoder_input(self, ids):
        return [*ids, 0]

    def decode(self, _sources, _search, prefixes):
        self.prefixes += map(self.decode_target, prefixes)
        return [[Hypothesis([*prefix, *self.encode_target(self.ending)], -0.5)] for prefix in prefixes]

    def score(self, _sources, targets):
        first = targets[0]
        return [[0.0 if target == first else -self.loss] * (len(target) + 1) for target in targets]


def corrected(direction, source, translation, is_allowed=lambda _: True):
    first = Hypothesis(direction.encode_target(translation), -0.1)
    steps = correct_numbers(direction, source, range(9), first, TranslateOptions(), is_allowed)
    ((found, _),) = search_jointly(direction, [steps])
    return found and direction.decode_target(found.tokens)


def test_the_right_number_takes_the_place_of_the_wrong_one():
    direction = Letters(" last year, so it says.")
    text = corrected(direction, "公司去年亏损12.5亿元。", "The company lost 125 billion yuan last year.")
    assert text == "The company lost 1.25 billion yuan last year."
    assert direction.prefixes == ["The company lost 1.25 billion yuan", "The company lost 1,250,000,000 yuan"]


def test_several_numbers_are_corrected_one_by_one():
    source, wrong = "三百人和五百只狗。", "There were 30 people and 50 dogs."
    assert corrected(Letters(" people and 50 dogs."), source, wrong) == "There were 300 people and 500 dogs."


def test_what_the_model_finds_absurd_or_the_caller_forbids_is_no_correction():
    source, wrong = "公司去年亏损12.5亿元。", "The company lost 125 billion yuan last year."
    assert corrected(Letters(".", MAX_LOSS + 1), source, wrong) is None
    assert corrected(Letters("."), source, wrong, lambda _: False) is None


def test_a_number_that_is_not_in_the_source_cannot_be_corrected():
    assert corrected(Letters("."), "他来了。", "He came in 2015.") is None
