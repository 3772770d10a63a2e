"""Encoding and decoding lose nothing, and learning a tokeniser is deterministic and bounded."""

import json

import numpy as np
import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sixfold.config import ModelConfig, TokenizerConfig
from sixfold.errors import ConfigError, DataError, ModelFileError, RequestError
from sixfold.text.encodings import read_lines
from sixfold.text.learn import sample_lines, train_tokenizer
from sixfold.text.tokenizer import SPECIALS, Tokenizer, span_tokens

TEXT = [
    "机器学习很有趣", "我爱机器学习", "他在学习机器翻译。", "Machine learning is interesting.",
    "I love machine learning",
    "She loves learning machines; they love her, too!", "数字 123 与 Python 代码", "naïve café Übergröße",
    "<eos> is no end",
] * 4  # fmt: skip
ALGORITHMS = ("bpe", "wordpiece", "unigram")
NASTY = [
    "", " ", "  two  spaces  ", "\t\n\r\n", "\0", "a\0b", "👩‍👩‍👧 🇨🇳", "e\u0301 é", "שלום עולם", "مرحبا بالعالم",
    "नमस्ते",
    "<eos><pad></s>", "<0x41>", "▁ Ġ ##x", "\ufeffBOM", "\u2028\x85\u3000", "学习Python的", "x" * 500, "学" * 500,
    "\U0010ffff",
]  # fmt: skip


@pytest.fixture(scope="module", params=ALGORITHMS)
def tokenizer(request):
    return train_tokenizer(TEXT, TokenizerConfig(algorithm=request.param, vocab=420, tags=("zh", "en")))


@settings(max_examples=300, deadline=None)
@given(text=st.text())
@example(text=" leading")
def test_every_string_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("text", NASTY)
def test_nasty_strings_come_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("text", [text for text in NASTY if text] + TEXT[:9])
def test_offsets_lead_back_to_the_text(tokenizer, text):
    encoding = tokenizer.encode_with_offsets(text)
    assert encoding.ids == tokenizer.encode(text)
    covered = "".join(text[start:end] for start, end in sorted(set(encoding.offsets)))
    assert covered == text
    for token, (start, end) in zip(encoding.tokens, encoding.offsets, strict=True):
        if not token.startswith("<0x"):
            assert text[start:end] in (token, token.removeprefix(" "))


def test_special_ids_are_reserved_and_unreachable_from_text(tokenizer):
    assert tokenizer.tokens[: len(SPECIALS)] == list(SPECIALS)
    assert tokenizer.tokens[tokenizer.tag("zh")] == "<zh>"
    reserved = set(range(len(SPECIALS) + 2))
    for text in ["<pad>", "<bos> <eos>", "<unk>", "<zh>x<en>", "<mask>"]:
        assert not reserved & set(tokenizer.encode(text))


def test_decoding_leaves_out_specials_and_tags(tokenizer):
    ids = [1, tokenizer.tag("en"), *tokenizer.encode("I love machine learning"), 2, 0, 0]
    assert tokenizer.decode(ids) == "I love machine learning"


def test_words_of_the_training_text_are_few_pieces(tokenizer):
    assert len(tokenizer.encode("机器学习很有趣")) < 7
    assert len(tokenizer.encode("I love machine learning")) < 12


def test_a_word_is_the_same_piece_at_the_start_and_further_on():
    tokenizer = train_tokenizer(["love is love"] * 9, TokenizerConfig(vocab=300))
    ids = tokenizer.encode("love is love")
    assert ids[0] == ids[-1]


def test_han_characters_are_the_same_pieces_at_the_start_and_behind_a_space():
    tokenizer = train_tokenizer(["北京 北京", "在北京"] * 9, TokenizerConfig(vocab=300))
    start, inside = tokenizer.encode("北京"), tokenizer.encode("在 北京")
    assert start[-1] == inside[-1]
    assert tokenizer.tokens[start[-1]] == "北京"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_span_token_is_one_piece_wherever_it_stands_and_no_other_piece_holds_it(algorithm):
    config = TokenizerConfig(algorithm, vocab=440, tags=("zh", "en"), spans=2)
    tokens = span_tokens(2)
    tokenizer = train_tokenizer([*TEXT, *(f"学习{token}machine {token}" for token in tokens)], config)
    assert len(tokens) == 6  # placeholders, opening and closing tags
    for token in tokens:
        assert [piece for piece in tokenizer.tokens if token in piece] == [token]
        text = f"I{token}love{token}{token} 机器{token}"
        ids = tokenizer.encode(text)
        assert ids.count(tokenizer.tokens.index(token)) == 4
        assert tokenizer.decode(ids) == text
    loaded = Tokenizer.from_json(tokenizer.to_json())
    assert loaded.spans == 2
    assert loaded.to_json() == tokenizer.to_json()


def test_a_tokeniser_is_the_same_after_json(tokenizer):
    loaded = Tokenizer.from_json(tokenizer.to_json())
    assert loaded.tokens == tokenizer.tokens
    assert loaded.tags == tokenizer.tags
    for text in NASTY + TEXT[:9]:
        assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.to_json() == tokenizer.to_json()


def test_training_twice_gives_the_same_tokeniser(tokenizer):
    config = TokenizerConfig(algorithm=tokenizer.algorithm, vocab=420, tags=("zh", "en"))
    assert train_tokenizer(TEXT, config).tokens == tokenizer.tokens


def test_sampling_cuts_pieces_but_not_text(tokenizer):
    ids = tokenizer.encode("I love machine learning 机器学习很有趣")
    random = np.random.default_rng(5)
    samples = [tokenizer.sample(ids, 0.5, random) for _ in range(20)]
    assert all(tokenizer.decode(sample) == "I love machine learning 机器学习很有趣" for sample in samples)
    assert len({tuple(sample) for sample in samples}) > 5
    assert max(map(len, samples)) > len(ids)


def test_sampling_repeats_from_its_seed_and_rate_zero_does_nothing(tokenizer):
    ids = tokenizer.encode("I love machine learning")
    first, second = (tokenizer.sample(ids, 0.5, np.random.default_rng(3)) for _ in range(2))
    assert first == second
    assert tokenizer.sample(ids, 0.0, np.random.default_rng(3)) == ids


def test_a_batch_is_what_each_text_is_alone(tokenizer):
    assert tokenizer.encode_batch(NASTY) == [tokenizer.encode(text) for text in NASTY]


def test_a_model_config_is_fitted_to_a_tokeniser(tokenizer):
    config = tokenizer.fit(ModelConfig())
    assert (config.vocab, config.pad, config.bos, config.eos, config.unk) == (tokenizer.vocab, 0, 1, 2, 3)


def test_a_hugging_face_tokeniser_loads(tmp_path):
    rust = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({"[PAD]": 0, "[UNK]": 1, "love": 2, "##ly": 3, "[SEP]": 4}, unk_token="[UNK]")
    )
    rust.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    rust.decoder = tokenizers.decoders.WordPiece()
    rust.add_special_tokens(["[PAD]", "[UNK]", "[SEP]"])
    rust.save(str(tmp_path / "tokenizer.json"))
    foreign = Tokenizer.load(tmp_path / "tokenizer.json")
    assert foreign.encode("lovely love") == [2, 3, 2]
    assert foreign.decode([2, 3, 2, 4]) == "lovely love"
    assert foreign.specials == {"pad": 0, "unk": 1, "eos": 4}
    assert Tokenizer.from_json(foreign.to_json()).encode("lovely") == [2, 3]
    with pytest.raises(RequestError, match="got one of another toolkit"):
        foreign.sample([2, 3], 0.5, np.random.default_rng(0))


def test_a_foreign_tokeniser_keeps_words_that_were_added_and_may_skip_ids():
    rust = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 7, "[UNK]": 3}, unk_token="[UNK]"))
    rust.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    rust.add_tokens(["hello"])
    foreign = Tokenizer(rust, "foreign")
    assert foreign.vocab == 1 + max(rust.get_vocab().values())
    assert foreign.decode(foreign.encode("a hello b")) == "a hello b"
    assert foreign.encode_with_offsets("a b").tokens == ["a", "b"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_piece_is_longer_than_max_piece(algorithm):
    text = ["counterrevolutionaries 机器学习机器学习机器学习"] * 50
    tokenizer = train_tokenizer(text, TokenizerConfig(algorithm=algorithm, vocab=600, max_piece=6))
    assert 3 <= max(map(len, tokenizer.tokens[5 + 256 :])) <= 6


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_character_that_the_sample_missed_costs_only_itself(algorithm):
    config = TokenizerConfig(algorithm=algorithm, vocab=300, sample_lines=1)
    tokenizer = train_tokenizer(["plain words plain words", *["é"] * 30], config)
    encoding = tokenizer.encode_with_offsets("plainé words")
    assert tokenizer.decode(encoding.ids) == "plainé words"
    pairs = zip(encoding.tokens, encoding.offsets, strict=True)
    assert all(end - start <= 1 for token, (start, end) in pairs if token.startswith("<0x"))


def test_learning_keeps_a_bounded_even_sample():
    lines, characters = sample_lines((f"line {number}" for number in range(20000)), 500, seed=1)
    assert len(lines) == 500
    assert characters["l"] == 20000
    numbers = [int(line.split()[1]) for line in lines]
    assert 8000 < np.mean(numbers) < 12000


def test_rare_characters_are_spelt_and_do_not_crowd_out_pieces():
    text = ["common words and more common words"] * 500 + [chr(0x4E00 + i) for i in range(3000)]
    tokenizer = train_tokenizer(text, TokenizerConfig(vocab=400))
    assert tokenizer.vocab <= 400
    assert len(tokenizer.encode("common words")) <= 3
    assert tokenizer.decode(tokenizer.encode("丐")) == "丐"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_too_small_a_vocabulary_is_refused(algorithm):
    with pytest.raises(ConfigError, match=r"tokenizer\.vocab: expected at least 277"):
        train_tokenizer(TEXT, TokenizerConfig(algorithm=algorithm, vocab=200))


@pytest.mark.parametrize("lines", [[], ["", ""]])
def test_nothing_to_learn_from_is_refused(lines):
    with pytest.raises(DataError, match="expected text to learn from"):
        train_tokenizer(lines, TokenizerConfig(vocab=400))


def test_a_lone_surrogate_is_refused(tokenizer):
    with pytest.raises(DataError, match="lone surrogate at character 2"):
        tokenizer.encode("ab\ud800")


def test_an_unknown_tag_is_refused(tokenizer):
    with pytest.raises(RequestError, match=r"\(zh, en\); got 'de'"):
        tokenizer.tag("de")


def test_ids_outside_the_vocabulary_are_refused(tokenizer):
    with pytest.raises(DataError, match="expected numbers from 0 to"):
        tokenizer.decode([99999])


@pytest.mark.parametrize("content", ["{", "[]", '{"rust": {}, "version": 1}', '{"version": 1}', "null"])
def test_a_damaged_tokeniser_is_one_line(content):
    with pytest.raises(ModelFileError) as caught:
        Tokenizer.from_json(content)
    assert "\n" not in str(caught.value)


def test_a_newer_tokeniser_says_upgrade(tokenizer):
    state = json.loads(tokenizer.to_json()) | {"version": 2}
    with pytest.raises(ModelFileError, match="format 2 is newer"):
        Tokenizer.from_json(json.dumps(state))


def test_text_that_is_not_utf8_is_named_by_line(tmp_path):
    (tmp_path / "a.txt").write_bytes("第一行\nab\xff".encode("latin-1", "ignore") + b"\nab\xffcd\n")
    with pytest.raises(DataError, match=r"a\.txt:\d+: expected UTF-8; got byte 0xff at column 3"):
        list(read_lines(tmp_path / "a.txt"))


def test_lines_keep_everything_but_their_ends(tmp_path):
    (tmp_path / "a.txt").write_bytes("  a\u2028b \r\n\nlast".encode())
    assert list(read_lines(tmp_path / "a.txt")) == ["  a\u2028b ", "", "last"]


def test_old_names_of_a_tokeniser_still_work_and_warn(tokenizer):
    with pytest.warns(DeprecationWarning, match=r"now Tokenizer\.normalise"):
        assert tokenizer.read("café") == tokenizer.normalise("café")
    with pytest.warns(DeprecationWarning, match=r"now Tokenizer\.character_map"):
        assert tokenizer.fold is tokenizer.character_map
    with pytest.warns(DeprecationWarning, match=r"now Tokenizer\.tag_prefix"):
        assert tokenizer.known_tags("zh") == tokenizer.tag_prefix("zh") == (tokenizer.tag("zh"),)
    assert tokenizer.tag_prefix("unknown") == ()
