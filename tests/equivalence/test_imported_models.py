"""Imported models translate as transformers does: the same ids from texts, the same beam search, the same texts."""

import random

import pytest
import small_checkpoints as checkpoints
import torch
from small_sentencepiece import ALPHABET, TEXT

from sixfold import Translator, modelfile
from sixfold.decoding.options import SearchOptions
from sixfold.engines.cpu import CpuEngine
from sixfold.engines.gpu import GpuEngine
from sixfold.interop.sources import read_source
from sixfold.translation.direction import directions_of

LENGTH = 24
EXACT = 1000.0  # CTranslate2 cannot tell that no live hypothesis can win; with this patience it finds the same
TAGS = (">>fra<<", ">>ron<<", ">>cmn_Hans<<")
MODELS = {
    "Marian": (checkpoints.marian, {}, ("en", "fr")),
    "Marian with tags": (checkpoints.marian, {"tags": TAGS}, ("en", "ro")),
    "Marian with separate vocabularies": (checkpoints.marian, {"separate": True}, ("en", "fr")),
    "M2M100": (checkpoints.m2m100, {}, ("en", "zh")),
    "NLLB": (checkpoints.nllb, {}, ("en", "zh")),
    "mBART-50": (checkpoints.mbart, {}, ("en", "ro")),
    "mBART-25": (checkpoints.mbart, {"fifty": False}, ("en", "ro")),
}
TARGET_TOKENS = {"M2M100": "__zh__", "NLLB": "zho_Hans", "mBART-50": "ro_RO"}


class Pair:
    """A checkpoint in transformers, and the direction of the model file that it was imported into."""

    def __init__(self, name, folder):
        make, settings, languages = MODELS[name]
        self.model, self.tokenizer = make(folder, **settings)
        self.folder = folder / "model"
        imported = read_source(str(self.folder))
        modelfile.save(
            folder / "m.safetensors", imported.config, imported.weights(), imported.tokenizer, imported.card,
            target_tokenizer=imported.target_tokenizer, sequence_format=imported.sequence_format,
        )  # fmt: skip
        self.path = folder / "m.safetensors"
        file = modelfile.load(self.path)
        # CTranslate2 never ends a target right after a prefix; the torch engine has no such rule, like transformers.
        is_prefixed = name in TARGET_TOKENS
        self.engine = GpuEngine.load(file, "cpu", "float32") if is_prefixed else CpuEngine(file, "float32", threads=1)
        self.patience = 0.0 if is_prefixed else EXACT
        self.direction = next(
            each for each in directions_of(file, self.engine, file.tokenizer) if each.languages == languages
        )
        self.tag = ">>ron<< " if "tags" in name else ""
        self.forced = None
        if name in TARGET_TOKENS:
            self.forced = self.tokenizer.convert_tokens_to_ids(TARGET_TOKENS[name])
        # Version 5 of transformers does not count the languages of M2M100 and of Marian as special tokens.
        self.special = {*self.tokenizer.all_special_ids, *self.direction.target_tokenizer.reserved}

    def their_ids(self, text):
        return self.tokenizer(self.tag + text)["input_ids"]

    def our_ids(self, text):
        return self.direction.encoder_input(self.direction.tokenizer.encode(text))

    def their_translations(self, texts, beam=4):
        batch = self.tokenizer([self.tag + text for text in texts], return_tensors="pt", padding=True)
        output = self.model.generate(
            **batch, num_beams=beam, max_new_tokens=LENGTH,
            **({} if beam == 1 else {"early_stopping": "never", "length_penalty": 1.0}),
            do_sample=False, forced_bos_token_id=self.forced,
        )  # fmt: skip
        tokens = [[token for token in row if token not in self.special] for row in output.tolist()]
        decoded = [self.tokenizer.decode(each, clean_up_tokenization_spaces=False) for each in tokens]
        return [" ".join(text.split()) for text in decoded], tokens

    def score(self, text, tokens):
        """Return the score of a translation as a search has it: over the length with prefix and <eos>."""
        (logprobs,) = self.direction.engine.score([self.our_ids(text)], [tokens])
        before = len(self.direction.special.before_target)
        length = min(len(tokens) + 1, LENGTH - before)
        return sum(logprobs[:length]) / (length + before)

    def our_translations(self, texts, beam=4):
        count = len(self.direction.special.before_target)
        options = SearchOptions(beam=beam, max_length=LENGTH - count, min_length=0, patience=self.patience)
        results = self.direction.engine.decode([self.our_ids(text) for text in texts], options)
        tokens = [[token for token in hypotheses[0].tokens if token not in self.special] for hypotheses in results]
        return [self.direction.decode_target(each) for each in tokens], tokens


@pytest.fixture(scope="module", params=MODELS)
def pair(request, tmp_path_factory):
    return Pair(request.param, tmp_path_factory.mktemp("checkpoint"))


def texts(count, seed=1):
    """Return texts in ten scripts."""
    chosen = random.Random(seed)
    kinds = (
        lambda: "".join(chosen.choice(ALPHABET) for _ in range(chosen.randrange(1, 30))),
        lambda: chosen.choice(TEXT),
        lambda: " ".join(chosen.sample(TEXT, 2)),
    )
    return [chosen.choice(kinds)().replace("<", "(").strip() or "a" for _ in range(count)]


def check_ids(pair, count):
    for text in texts(count):
        assert pair.our_ids(text) == pair.their_ids(text), text


def test_texts_become_the_same_ids(pair):
    check_ids(pair, 200)


@pytest.mark.slow
def test_2000_texts_become_the_same_ids(pair):
    check_ids(pair, 2000)


def test_ids_become_the_same_texts(pair):
    chosen = random.Random(2)
    size = min(pair.direction.target_tokenizer.vocab, len(pair.tokenizer))
    for _ in range(200):
        ids = [chosen.randrange(4, size) for _ in range(chosen.randrange(12))]
        ids = [index for index in ids if index not in pair.special]
        theirs = pair.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert pair.direction.decode_target(ids) == " ".join(theirs.split())


def check_translations(pair, count, beam=4, seed=3):
    sentences = texts(count, seed)
    theirs, their_tokens = pair.their_translations(sentences, beam)
    ours, tokens = pair.our_translations(sentences, beam)
    equal = [index for index in range(count) if (tokens[index], ours[index]) == (their_tokens[index], theirs[index])]
    for index in set(range(count)) - set(equal):  # rounding may decide between two translations of the same score
        scores = [pair.score(sentences[index], each) for each in (tokens[index], their_tokens[index])]
        assert scores[0] == pytest.approx(scores[1], abs=1e-5), sentences[index]
    assert len(equal) >= 0.9 * count
    return tokens


@torch.no_grad()
@pytest.mark.parametrize("beam", [1, 4])
def test_beam_search_finds_what_transformers_finds(pair, beam):
    tokens = check_translations(pair, 24, beam)
    assert len({len(each) for each in tokens}) > 1
    assert len({index for each in tokens for index in each}) > 2


@torch.no_grad()
@pytest.mark.slow
def test_2000_texts_are_translated_as_transformers_does(pair):
    for start in range(20):
        check_translations(pair, 100, seed=100 + start)


def test_a_translator_opens_the_model(pair):
    with Translator(pair.path, "cpu") as translator:
        source, target = pair.direction.languages
        translation = translator.translate("The machines are learning.", source, target)
        assert [token.text for token in translation.tokens if token.text] or not translation.text
        scored = translator.score("The machines are learning.", "maｃhines a", source, target)
        assert scored.score < 0
