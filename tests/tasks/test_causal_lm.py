"""The causal task: packed equals alone, the loss is that of transformers, and bits per byte are what they say."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from small_models import random_model

from sixfold.config import ModelConfig, TokenizerConfig, TrainingConfig
from sixfold.data.batching import Pieces
from sixfold.data.examples import Examples, Packing
from sixfold.data.store import Ragged
from sixfold.interop.huggingface import load_folder
from sixfold.model.transformer import load_model
from sixfold.tasks.causal_lm import CausalTask
from sixfold.tasks.causal_lm_validation import CausalValidator, TextSet
from sixfold.tasks.task import Task
from sixfold.tasks.text_batches import join, make_batch, windows
from sixfold.text.learn import train_tokenizer
from sixfold.training.distributed import SINGLE_PROCESS

SHAPE = ModelConfig(
    kind="decoder", vocab=60, d_model=16, heads=4, d_ff=24, decoder_layers=2, max_length=64, norm_position="pre",
    dropout=0.0,
)  # fmt: skip
TEXTS = ["One small text.", "另一个。", "A third one\nwith two lines.", "x"]
TOKENIZER = train_tokenizer([text.replace("\n", " ") for text in TEXTS] * 9, TokenizerConfig(vocab=320))


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def ragged(*texts):
    return Ragged(np.array([token for text in texts for token in text], np.int64), np.array(list(map(len, texts))))


def loss_of(model, task, *examples):
    return sum(task.loss(model, task.collate(each, SHAPE)).item() for each in examples)


def test_it_is_a_task():
    assert isinstance(CausalTask(), Task)


@pytest.mark.parametrize("positions", ["learned", "rotary", "sinusoidal"])
@pytest.mark.parametrize("compatibility", ["scaled-dot", "additive"])
def test_the_loss_of_documents_that_share_a_row_is_that_of_each_alone(positions, compatibility):
    model = random_model(ModelConfig(**{**vars(SHAPE), "positions": positions, "compatibility": compatibility}))
    random = np.random.default_rng(1)
    texts = [random.integers(4, 60, length).tolist() for length in (5, 11, 1, 20, 8, 14)]
    task = CausalTask()
    packing = Packing(np.array([3, 2, 1]), 4, {"text": 32})  # rows with padding, and one that is empty
    together = loss_of(model, task, Examples({"text": ragged(*texts)}, np.arange(6), packing))
    alone = [loss_of(model, task, Examples({"text": ragged(text)}, np.arange(1))) for text in texts]
    assert together == pytest.approx(sum(alone), rel=1e-5)
    padded = loss_of(model, task, Examples({"text": ragged(*texts)}, np.arange(6)))
    assert padded == pytest.approx(sum(alone), rel=1e-5)


def test_a_piece_is_predicted_from_itself_and_the_token_before_it():
    pieces = Pieces(np.array([0, 2, 4]), np.array([2, 2, 2]))  # of a text 7 8 9 10 11, <eos> included
    text = ragged([7, 8], [8, 9, 10], [10, 11])
    batch = CausalTask().collate(Examples({"text": text}, np.arange(3), None, pieces), SHAPE)
    assert batch.tokens.tolist() == [[SHAPE.bos, 7], [8, 9], [10, 11]]
    assert batch.labels.tolist() == [7, 8, 9, 10, 11, SHAPE.eos]


def test_only_the_answer_is_learnt_and_the_prompt_is_read():
    task = CausalTask(("prompt", "answer"))
    columns = {"prompt": ragged([7, 8, 9], []), "answer": ragged([10], [11, 12])}
    for packing in (None, Packing(np.array([2]), 1, {"prompt": 5, "answer": 6})):
        batch = task.collate(Examples(columns, np.arange(2), packing), SHAPE)
        read = batch.tokens[batch.tokens != SHAPE.pad]
        assert read.tolist() == [SHAPE.bos, 7, 8, 9, 10, SHAPE.bos, 11, 12]
        assert batch.labels.tolist() == [10, SHAPE.eos, 11, 12, SHAPE.eos]
        flat = batch.tokens.flatten()[batch.label_positions]
        assert flat.tolist() == [9, 10, SHAPE.bos, 11, 12]


def test_a_prompt_may_have_other_tokens_before_it_or_none():
    columns = {"prompt": ragged([7, 8], []), "answer": ragged([10], [11, 12])}
    for before in ((), (5, 6)):
        task = CausalTask(("prompt", "answer"), before=before)
        for packing in (None, Packing(np.array([2]), 1, {"prompt": 6, "answer": 6})):
            batch = task.collate(Examples(columns, np.arange(2), packing), SHAPE)
            read = batch.tokens[batch.tokens != SHAPE.pad]
            assert read.tolist() == [*before, 7, 8, 10, *before, 11, 12]
            # What nothing comes before cannot be predicted.
            assert batch.labels.tolist() == [10, SHAPE.eos, *([11] if before else []), 12, SHAPE.eos]


def test_the_loss_of_an_answer_is_its_probability_after_the_prompt():
    model = random_model(SHAPE)
    task = CausalTask(("prompt", "answer"))
    prompts, answers = [[7, 8, 9], [20]], [[10, 11], [12, 13, 14]]
    expected = 0.0
    for prompt, answer in zip(prompts, answers, strict=True):
        sequence = torch.tensor([[SHAPE.bos, *prompt, *answer, SHAPE.eos]])
        logprobs = model(sequence[:, :-1]).log_softmax(-1)[0]
        expected -= sum(
            float(logprobs[i, sequence[0, i + 1]]) for i in range(len(prompt), len(prompt) + len(answer) + 1)
        )
    columns = {"prompt": ragged(*prompts), "answer": ragged(*answers)}
    for packing in (None, Packing(np.array([2]), 1, {"prompt": 8, "answer": 16})):
        assert loss_of(model, task, Examples(columns, np.arange(2), packing)) == pytest.approx(expected, rel=1e-5)


def gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=60, n_embd=16, n_head=4, n_layer=2, n_positions=64, bos_token_id=1, eos_token_id=2,
    ))  # fmt: skip


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=60, hidden_size=16, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=2,
        intermediate_size=24, max_position_embeddings=64,
    ))  # fmt: skip


@pytest.mark.parametrize("make", [gpt2, llama])
def test_the_loss_of_a_text_is_that_of_transformers(make, tmp_path):
    torch.manual_seed(1)
    peer = make().eval()
    with torch.no_grad():
        for weight in peer.parameters():
            weight += 0.2 * torch.randn_like(weight)
    peer.save_pretrained(tmp_path)
    file = load_folder(tmp_path)
    shape = file.config.model
    model = load_model(shape, file.weights()).eval()
    texts = [torch.randint(4, 60, (length,)).tolist() for length in (30, 12, 17)]
    expected = 0.0
    for text in texts:
        ids = torch.tensor([[shape.bos, *text, shape.eos]])
        expected += float(peer(input_ids=ids, labels=ids).loss) * (len(text) + 1)
    task = CausalTask()
    batch = task.collate(
        Examples({"text": ragged(*texts)}, np.arange(3), Packing(np.array([2, 1]), 2, {"text": 48})), shape
    )
    assert len(batch.labels) == sum(map(len, texts)) + 3
    assert task.loss(model, batch).item() == pytest.approx(expected, rel=1e-4)


def validator_of(model, row_tokens=64):
    shape = TOKENIZER.fit(SHAPE)
    return CausalValidator(model, shape, TOKENIZER, TrainingConfig(), SINGLE_PROCESS, row_tokens)


def test_bits_per_byte_and_perplexity_are_what_a_few_lines_compute():
    shape = TOKENIZER.fit(SHAPE)
    model = random_model(shape)
    nats, tokens = 0.0, 0
    for text in TEXTS:
        ids = torch.tensor([shape.bos, *TOKENIZER.encode(text), shape.eos])
        nats += float(F.cross_entropy(model(ids[None, :-1])[0], ids[1:], reduction="sum"))
        tokens += len(ids) - 1
    values = validator_of(model).scores(TextSet("dev", TEXTS))
    assert values["bits_per_byte"] == pytest.approx(nats / math.log(2) / len("".join(TEXTS).encode()), rel=1e-5)
    assert values["perplexity"] == pytest.approx(math.exp(nats / tokens), rel=1e-5)
    assert (values["tokens"], values["bytes"]) == (tokens, 15 + 12 + 27 + 1)


class Rank:
    """One of two processes, before the sums of both are added."""

    def __init__(self, rank):
        self.rank = rank

    def scatter(self, items):
        return list(items[self.rank :: 2])

    def gather(self, share):
        return share

    def all_reduce(self, tensor):
        return tensor


def test_processes_share_the_work_of_a_validation():
    shape = TOKENIZER.fit(SHAPE)
    model, dev_set = random_model(shape), TextSet("dev", TEXTS)
    whole = validator_of(model, row_tokens=4).scores(dev_set)
    parts = [
        CausalValidator(model, shape, TOKENIZER, TrainingConfig(), Rank(rank), 4).scores(dev_set) for rank in (0, 1)
    ]
    assert [part["tokens"] < whole["tokens"] for part in parts] == [True, True]
    assert sum(part["tokens"] for part in parts) == whole["tokens"]
    assert sum(part["bits_per_byte"] for part in parts) == pytest.approx(whole["bits_per_byte"], rel=1e-6)


def test_a_long_text_is_judged_in_the_rows_that_it_was_learnt_in():
    shape = TOKENIZER.fit(SHAPE)
    model = random_model(shape)
    ids = TOKENIZER.encode(TEXTS[2])
    parts = windows(ids, 4, shape)
    assert [token for part in parts for token in part[1:]] == [*ids, shape.eos]
    expected = 0.0
    for part in parts:
        logits = model(torch.tensor([part[:-1]]))[0]
        expected += float(F.cross_entropy(logits, torch.tensor(part[1:]), reduction="sum"))
    values = validator_of(model, row_tokens=4).scores(TextSet("dev", [TEXTS[2]]))
    assert values["loss"] * values["tokens"] == pytest.approx(expected, rel=1e-5)


def test_answers_are_judged_alone_and_a_long_prompt_loses_its_beginning():
    shape = TOKENIZER.fit(SHAPE)
    validator = validator_of(random_model(shape))
    values = validator.scores(TextSet("dev", ["yes"], ["Is it?"]))
    assert values["bytes"] == 3
    assert values["tokens"] == len(TOKENIZER.encode("yes")) + 1
    plain = CausalValidator(validator.model, shape, TOKENIZER, TrainingConfig(), SINGLE_PROCESS, 64, before=())
    assert plain.sequence([9, 10], [7, 8]) == ([9, 10, 7, 8, shape.eos], 1)
    assert plain.samples(TextSet("dev", ["yes"], [""]))[0][0] == ""
    tokens, given = validator.sequence(list(range(100)), [7, 8])
    assert tokens == [shape.bos, *range(39, 100), 7, 8, shape.eos]
    assert len(tokens) - 1 == shape.max_length
    assert given == 61


def test_samples_show_how_texts_go_on_and_repeat():
    shape = TOKENIZER.fit(SHAPE)
    validator = validator_of(random_model(shape))
    samples = validator.samples(TextSet("dev", TEXTS))
    assert len(samples) == 3
    for (given, _, rest), text in zip(samples, TEXTS, strict=False):
        assert text.startswith(given)
        assert text.endswith(rest)
    assert samples == validator.samples(TextSet("dev", TEXTS))
    ((prompt, _, answer),) = validator.samples(TextSet("dev", ["yes"], ["Is it?"]))
    assert (prompt, answer) == ("Is it?", "yes")


def test_texts_are_joined_one_by_one():
    assert join([ragged([1], [2, 3]), ragged([], [4]), ragged([5], [])]).values.tolist() == [1, 5, 2, 3, 4]
    batch = make_batch(ragged([1, 2, 3]), SHAPE)
    assert (batch.tokens.tolist(), batch.labels.tolist()) == ([[1, 2]], [2, 3])
