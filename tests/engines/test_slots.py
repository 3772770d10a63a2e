"""Keys and values in slots: texts of different lengths, that join, leave and take over what others had."""

import threading
import time
from dataclasses import replace

import pytest
import torch
from small_models import SMALL, random_model, variants

from sixfold.decoding.options import GREEDY, SamplingOptions
from sixfold.engines import sampling, slots
from sixfold.engines.sampling import SamplingEngine
from sixfold.engines.slots import Slots
from sixfold.engines.writing import WritingOptions

SINGLE = {name: replace(config, kind="decoder") for name, config in variants(pairs=False).items()}
CONFIG = replace(SMALL, kind="decoder", positions="rotary", norm_position="pre", max_length=400, tie_output=False)
TEXTS = [[5, 6, 7, 8], [9], [10, 11, 12, 13, 14, 15], [5, 6, 7, 4, 4]]


@pytest.fixture(scope="module")
def model():
    return random_model(CONFIG).eval()


@pytest.fixture
def engine(model):
    return SamplingEngine(model, CONFIG)


def logits_of(model, tokens):
    with torch.inference_mode():
        return model(torch.tensor([tokens]))[0]


@pytest.mark.parametrize("has_fixed_shapes", [False, True], ids=["", "fixed"])
@pytest.mark.parametrize("name", SINGLE)
def test_texts_of_different_lengths_step_together_as_each_does_alone(name, has_fixed_shapes):
    config = SINGLE[name]
    model = random_model(config).eval()
    table = Slots(model, config, has_fixed_shapes)
    texts = [list(text) for text in TEXTS]
    for text in texts:
        slot = table.add(text, 12)
        shared = len(table.tokens[slot])
        logits = table.feed(slot, text[shared:], count=len(text) - shared)
        torch.testing.assert_close(logits, logits_of(model, text)[shared:], rtol=1e-4, atol=1e-4)
    for step in range(4):
        tokens = [4 + (3 * step + row) % 9 for row in range(len(texts))]
        logits = table.step(len(texts), torch.tensor(tokens))
        for row, text in enumerate(texts):
            text.append(tokens[row])
            torch.testing.assert_close(logits[row], logits_of(model, text)[-1], rtol=1e-4, atol=1e-4)
        if step == 1:  # the second text ends, and the last one moves into its slot
            table.remove(1)
            texts[1] = texts.pop()
            assert table.tokens[: table.live] == texts


def test_a_text_takes_over_the_beginning_that_an_earlier_or_a_live_one_has(model):
    table = Slots(model, CONFIG)
    prompt = [5, 6, 7, 8, 9]
    first = table.add(prompt, 20)
    assert table.tokens[first] == []
    table.feed(first, prompt)
    second = table.add([5, 6, 7, 10, 11], 20)  # from a live text
    assert table.tokens[second] == [5, 6, 7]
    torch.testing.assert_close(
        table.feed(second, [10, 11])[-1], logits_of(model, [5, 6, 7, 10, 11])[-1], rtol=1e-4, atol=1e-4
    )
    table.remove(second)
    table.remove(first)
    third = table.add([5, 6, 7, 10, 11], 20)  # from one that has ended; the last token is left to be fed
    assert table.tokens[third] == [5, 6, 7, 10]
    torch.testing.assert_close(
        table.feed(third, [11])[-1], logits_of(model, [5, 6, 7, 10, 11])[-1], rtol=1e-4, atol=1e-4
    )


def test_the_least_recently_used_beginning_is_given_up(model):
    table = Slots(model, CONFIG)
    for text in ([token, token + 1, 4] for token in range(5, 15)):
        table.feed(table.add(text, 20), text)
        table.remove(0)
    kept = [tokens[0] for tokens in table.tokens if tokens]
    assert sorted(kept) == [10, 11, 12, 13, 14]


@pytest.mark.parametrize("positions", ["rotary", "learned"])
def test_steps_of_fixed_shapes_leave_what_other_slots_hold_alone(positions, monkeypatch):
    config = replace(CONFIG, positions=positions, max_length=8)
    model = random_model(config).eval()
    monkeypatch.setattr(slots, "CAPACITY_STEP", 8)
    table = Slots(model, config, has_fixed_shapes=True)
    full = [5, 6, 7, 8, 9, 10, 11, 12]  # as long as a slot
    for text in (full, [9, 9], [10, 4, 4]):
        table.feed(table.add(text, 8), text)
    table.remove(0)  # the full one is free now, and the third of three slots
    assert table.tokens[2] == full
    table.step(2, torch.tensor([5, 6]))  # computes four slots
    table.add([*full[:7], 4], 8)
    expected = logits_of(model, [*full[:7], 4])[-1]
    torch.testing.assert_close(table.feed(2, [4])[-1], expected, rtol=1e-4, atol=1e-4)


def test_slots_grow_with_the_longest_text_and_shrink_when_it_has_ended(model, monkeypatch):
    table = Slots(model, CONFIG)
    text = [5, 6, 7, 8]
    table.feed(table.add(text, 20), text)
    assert table.layers[0].key.size(2) == 65
    table.add([9], 300)
    assert table.layers[0].key.size(2) == 321
    torch.testing.assert_close(
        table.feed(0, [9, 10])[-1], logits_of(model, [*text, 9, 10])[-1], rtol=1e-4, atol=1e-4
    )  # the slots have moved to new memory with their contents
    table.remove(1)
    table.remove(0)
    monkeypatch.setattr(slots, "CAPACITY_STEP", 16)
    table.add([9], 20)
    assert table.layers[0].key.size(2) == 33


def test_only_as_many_texts_are_live_as_their_keys_have_memory(model, monkeypatch):
    table = Slots(model, CONFIG)
    monkeypatch.setattr(slots, "CACHE_BYTES", 3 * 128 * table.position_bytes)
    for count in range(3):
        assert table.has_room(100), count
        table.add([5], 100)
    assert not table.has_room(1)
    for _ in range(3):
        table.remove(0)
    assert table.has_room(10**6)  # one text alone may take more


def texts_in_turn(engine, prompts, options):
    """Return the token ids of each prompt, written by a call of its own."""
    texts = [[] for _ in prompts]
    for prompt, text in zip(prompts, texts, strict=True):
        engine.write([prompt], options, lambda token, text=text: text.append(token.id) or False)
    return texts


def test_calls_at_the_same_time_share_steps_and_get_what_each_gets_alone(engine, model):
    rules = [GREEDY, SamplingOptions(seed=3), replace(GREEDY, repetition_penalty=1.5), SamplingOptions(top_k=4, seed=9)]
    prompts = [[5 + number, 6, 7] for number in range(8)]
    options = [WritingOptions((), 30, sampling=rules[number % 4]) for number in range(8)]
    expected = [texts_in_turn(SamplingEngine(model, CONFIG), [p], o)[0] for p, o in zip(prompts, options, strict=True)]
    texts = [[] for _ in prompts]
    counts = []
    step = engine._slots.step
    engine._slots.step = lambda count, tokens: counts.append(count) or step(count, tokens)
    gate = threading.Barrier(8)

    def write(number):
        gate.wait(60)
        engine.write([prompts[number]], options[number], lambda token: texts[number].append(token.id) or False)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert texts == expected
    assert max(counts) > 1  # some steps were shared
    assert sum(counts) == 8 * 29


def test_a_cancelled_call_ends_and_the_others_go_on(engine):
    is_cancelled = threading.Event()
    texts = {name: [] for name in ("first", "second")}

    def stop_first(token):
        texts["first"].append(token.id)
        if len(texts["first"]) == 5:
            is_cancelled.set()
        return False

    options = WritingOptions((), 60)
    threads = [
        threading.Thread(target=engine.write, args=([[5]], options, stop_first, is_cancelled.is_set)),
        threading.Thread(target=engine.write, args=([[6]], options, lambda t: texts["second"].append(t.id) or False)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(texts["first"]) == 5
    assert len(texts["second"]) == 60
    engine.write([[5]], options, lambda token: pytest.fail("nothing is written"), lambda: True)


def test_an_error_of_one_caller_leaves_the_others_alone(engine):
    text = []

    def fail(token):
        time.sleep(0.001)
        raise KeyError(token.id)

    other = threading.Thread(
        target=engine.write, args=([[6]], WritingOptions((), 60), lambda token: text.append(token.id) or False)
    )
    other.start()
    for _ in range(3):
        with pytest.raises(KeyError):
            engine.write([[5], [7]], WritingOptions((), 20), fail)
    other.join(60)
    assert len(text) == 60


def test_an_error_of_the_model_ends_all_calls_and_the_next_one_works(engine):
    feed = engine._slots.feed
    engine._slots.feed = lambda *_, **__: (_ for _ in ()).throw(MemoryError)
    with pytest.raises(MemoryError):
        engine.write([[5]], WritingOptions((), 5), lambda token: False)
    assert engine._slots.feed != feed
    assert len(texts_in_turn(engine, [[5]], WritingOptions((), 5))[0]) == 5


def test_an_error_while_a_text_joins_reaches_its_caller_though_another_thread_does_the_steps(engine):
    begun, outcomes = threading.Event(), []

    def take(_):
        begun.set()
        time.sleep(0.002)
        return False

    def write(prompt, on_token):
        try:
            engine.write([prompt], WritingOptions((), 300), on_token)
        except MemoryError:
            outcomes.append(prompt)

    first = threading.Thread(target=write, args=([5], take), daemon=True)
    first.start()
    assert begun.wait(60)
    engine._slots.add = lambda *_: (_ for _ in ()).throw(MemoryError)
    second = threading.Thread(target=write, args=([6], lambda _: False), daemon=True)
    second.start()
    for thread in (first, second):
        thread.join(60)
    assert sorted(outcomes) == [[5], [6]]


def test_the_others_go_on_while_a_long_prompt_is_read(engine, monkeypatch):
    monkeypatch.setattr(sampling, "PROMPT_TOKENS", 16)
    order = []
    begun = threading.Event()

    def first(_):
        order.append("short")
        begun.set()
        return False

    long = [5 + number % 9 for number in range(160)]
    expected = texts_in_turn(engine, [long], WritingOptions((), 3))[0]
    engine._slots = Slots(engine.model, CONFIG)
    short = threading.Thread(target=engine.write, args=([[6]], WritingOptions((), 200), first))
    short.start()
    assert begun.wait(60)
    text = []
    engine.write([long], WritingOptions((), 3), lambda token: order.append("long") or text.append(token.id) or False)
    short.join(60)
    assert text == expected
    assert order[: order.index("long")].count("short") >= 10  # 160 tokens in parts of 16


def test_texts_that_end_while_another_one_joins_leave_their_slots_in_order(engine, monkeypatch):
    monkeypatch.setattr(sampling, "PROMPT_TOKENS", 8)
    prompts = [[5], [6, 7], [5 + number % 9 for number in range(100)], [8] * 40, [9]]
    options = WritingOptions((), 12)
    expected = texts_in_turn(engine, prompts, options)
    engine._slots = Slots(engine.model, CONFIG)
    texts = {index: [] for index in range(len(prompts))}
    engine.write(prompts, options, lambda token: texts[token.prompt].append(token.id) or False)
    assert list(texts.values()) == expected
