import pytest
import small_generators as generators
from hypothesis import given, settings
from hypothesis import strategies as st

from sixfold.config import TokenizerConfig
from sixfold.engines.writing import WrittenToken
from sixfold.generation.text_stream import Detokenizer, StopStrings, TextStream
from sixfold.text.learn import train_tokenizer
from sixfold.text.tokenizer import Tokenizer

TOKENIZERS = {
    "byte-level": Tokenizer.from_json(generators.byte_level().to_str()),
    "byte fallback": Tokenizer.from_json(generators.byte_fallback().to_str()),
    "sixfold": train_tokenizer(generators.TEXTS * 3, TokenizerConfig(vocab=400)),
}
END = 2
CONTINUATIONS = [
    ("Once upon a time", " there was a girl 😀 who liked 龘."), ("", "Once upon"), ("a  ", "  b"),
    ("机器", "学习很有趣"), ("The quick", "-witted fox\n\n\tand more"), ("How are you?", " I’m fine — naïve café"),
]  # fmt: skip


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request):
    return TOKENIZERS[request.param]


def texts():
    return st.text(st.sampled_from("ab c龘😀é\n"), max_size=12)


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(list(TOKENIZERS)), prompt=texts(), text=texts())
def test_tokens_add_up_to_the_text_of_all_of_them(name, prompt, text):
    tokenizer = TOKENIZERS[name]
    ids = tokenizer.encode(prompt + text)
    for cut in range(len(ids) + 1):
        before = tokenizer.decode(ids[:cut])
        if before.endswith("\ufffd"):  # a prompt does not end within a character
            continue
        detokenizer = Detokenizer(tokenizer, ids[:cut])
        added = "".join(map(detokenizer.add, ids[cut:]))
        assert before + added == tokenizer.decode(ids)
        assert detokenizer.rest() == ""


@pytest.mark.parametrize(("prompt", "text"), CONTINUATIONS)
def test_a_stream_returns_whole_characters_and_every_token_with_its_text(tokenizer, prompt, text):
    whole_ids = tokenizer.encode(prompt + text)
    decoded = [tokenizer.decode(whole_ids[:cut]) for cut in range(len(whole_ids))]
    cut = next(cut for cut, each in enumerate(decoded) if len(each) >= len(prompt) and not each.endswith("\ufffd"))
    prompt_ids, ids = whole_ids[:cut], whole_ids[cut:]
    stream = TextStream(tokenizer, prompt_ids, (), (END,), 1000)
    chunks = [stream.add(WrittenToken(0, 0, token, -1.0)) for token in [*ids, END]]
    whole = tokenizer.decode([*prompt_ids, *ids])[len(tokenizer.decode(prompt_ids)) :]
    assert "".join(chunk.text for chunk in chunks) == whole
    assert "\ufffd" not in "".join(chunk.text for chunk in chunks)
    tokens = [token for chunk in chunks for token in chunk.tokens]
    assert [token.id for token in tokens] == ids
    assert "".join(token.text for token in tokens) == whole
    assert [chunk.finish for chunk in chunks] == [None] * len(ids) + ["stop"]


def test_bytes_that_never_become_a_character_are_returned_at_the_end(tokenizer):
    ids = tokenizer.encode("龘")
    assert len(ids) >= 3
    stream = TextStream(tokenizer, tokenizer.encode("How"), (), (END,), 2)
    first, second = (stream.add(WrittenToken(0, 0, token, -1.0)) for token in ids[-3:-1])
    assert first.text == ""
    assert set(second.text) == {"\ufffd"}
    assert second.finish == "length"
    assert "".join(token.text for token in (*first.tokens, *second.tokens)) == second.text


@settings(max_examples=300, deadline=None)
@given(
    parts=st.lists(st.text("abc", max_size=4), max_size=8),
    stops=st.lists(st.text("abc", min_size=1, max_size=4), max_size=3),
)
def test_a_text_ends_before_the_stop_string_that_is_complete_first_however_it_arrives(parts, stops):
    whole = "".join(parts)
    ends = [end for end in range(len(whole) + 1) if any(whole[:end].endswith(stop) for stop in stops)]
    finder, returned, stopped = StopStrings(stops), "", None
    for part in parts:
        certain, stopped = finder.add(part)
        returned += certain
        if stopped:
            break
    if ends:
        longest = max((stop for stop in stops if whole[: ends[0]].endswith(stop)), key=len)
        assert (returned, stopped) == (whole[: ends[0] - len(longest)], longest)
    else:
        assert (returned + finder.held, stopped) == (whole, None)


def test_only_what_may_become_a_stop_string_is_held_back():
    finder = StopStrings(["\nUser:", "END"])
    assert [finder.add(part)[0] for part in ("Hello", " EN", "GLAND\nU", "se", "\nUser")] == [
        "Hello", " ", "ENGLAND", "", "\nUse",
    ]  # fmt: skip
    assert finder.add(": hi") == ("", "\nUser:")


def test_tokens_after_a_stop_string_are_not_returned_and_the_one_it_cuts_is_cut(tokenizer):
    prompt, ids = tokenizer.encode("kiwi"), tokenizer.encode("we see your tea? I ate it")
    whole = tokenizer.decode([*prompt, *ids])[len("kiwi") :]
    for stop in ("your", "ee y", "?", "ea? I", " a", "it"):
        stream = TextStream(tokenizer, prompt, ("zebra", stop), (END,), 1000)
        chunks = []
        for token in ids:
            chunks.append(stream.add(WrittenToken(0, 0, token, -1.0)))
            if chunks[-1].finish:
                break
        expected = whole.partition(stop)[0]
        assert expected != whole
        assert "".join(chunk.text for chunk in chunks) == expected
        assert "".join(token.text for chunk in chunks for token in chunk.tokens) == expected
        assert (chunks[-1].finish, chunks[-1].stop) == ("stop", stop)
