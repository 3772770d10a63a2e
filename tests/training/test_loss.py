"""The loss in chunks is the loss; R-Drop and recomputation are what their definitions say."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from small_models import SMALL, random_model
from small_tasks import token_loss

from sixfold.config import TrainingConfig
from sixfold.tasks import loss as losses
from sixfold.tasks.translation_batches import pair_batch
from sixfold.training.loop import add_gradients, train
from sixfold.training.state import Guard, State

pytestmark = pytest.mark.usefixtures("double_precision")
PAIRS = [([5, 6, 7], [8, 9]), ([4], [10, 11, 12, 13, 14, 15]), ([6, 6], [7]), ([9, 8, 7, 6, 5, 4], [4, 5, 6])]
EXACT = replace(SMALL, dropout=0.0)
CONFIG = TrainingConfig(steps=3, warmup=1, learning_rate=1e-2)


def gradients(model):
    found = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    model.zero_grad()
    return found


def assert_same(one, other, tolerance=1e-6):
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=tolerance, msg=name)


@pytest.mark.parametrize("logits_per_chunk", [1, 50, 10**9])
@pytest.mark.parametrize("shape", [EXACT, replace(EXACT, output_bias=True, tie_output=False)])
def test_the_loss_in_chunks_is_torchs_cross_entropy_with_its_gradients(logits_per_chunk, shape, monkeypatch):
    monkeypatch.setitem(losses.LOGITS_PER_CHUNK, "cpu", logits_per_chunk)
    model = random_model(shape)
    batch = pair_batch(PAIRS, shape)
    logits = model.output(model.hidden(**batch.inputs)).flatten(0, 1)[batch.label_positions]
    expected = F.cross_entropy(logits, batch.labels, label_smoothing=0.1, reduction="sum")
    expected.backward()
    expected_gradients = gradients(model)
    loss = token_loss(CONFIG)(model, batch)
    loss.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert_same(gradients(model), expected_gradients, 1e-5)


def test_label_smoothing_leaves_out_tokens_that_a_bias_forbids():
    """The loss and its gradients are those of a vocabulary without these tokens."""
    random = torch.Generator().manual_seed(1)
    logits = (3 * torch.randn(6, 11, generator=random)).requires_grad_()
    forbidden, kept = torch.tensor([3, 10]), torch.tensor([0, 1, 2, 4, 5, 6, 7, 8, 9])
    bias = torch.zeros(11)
    bias[forbidden] = -1e4
    labels = torch.tensor([0, 1, 2, 4, 9, 5])
    expected = F.cross_entropy(logits[:, kept], torch.searchsorted(kept, labels), label_smoothing=0.1, reduction="sum")
    expected.backward()
    gradient, logits.grad = logits.grad, None
    loss = losses.smoothed_cross_entropy(logits + bias, labels, 0.1, forbidden)
    loss.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    torch.testing.assert_close(logits.grad, gradient, rtol=0, atol=1e-6)


def test_rdrop_is_the_mean_loss_of_two_passes_and_their_divergence(monkeypatch):
    monkeypatch.setitem(losses.LOGITS_PER_CHUNK, "cpu", 60)
    model = random_model(replace(SMALL, dropout=0.3)).train()
    batch = pair_batch(PAIRS, SMALL)
    torch.manual_seed(3)
    loss = token_loss(replace(CONFIG, rdrop=2.0))(model, batch)
    loss.backward()
    got = gradients(model)
    torch.manual_seed(3)
    twice = {name: None if tensor is None else torch.cat([tensor, tensor]) for name, tensor in batch.inputs.items()}
    logits = model.output(model.hidden(**twice)).unflatten(0, (2, -1)).flatten(1, 2)
    first, second = logits[:, batch.label_positions].unbind(0)
    p, q = first.log_softmax(-1), second.log_softmax(-1)
    divergence = (
        F.kl_div(p, q, reduction="sum", log_target=True) + F.kl_div(q, p, reduction="sum", log_target=True)
    ) / 2
    each = [F.cross_entropy(x, batch.labels, label_smoothing=0.1, reduction="sum") for x in (first, second)]
    expected = sum(each) / 2 + 2.0 * divergence
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert_same(got, gradients(model), 1e-4)


def test_recomputed_layers_give_the_same_gradients_dropout_included():
    batch = pair_batch(PAIRS, SMALL)
    found = []
    for recompute in (False, True):
        model = random_model(replace(SMALL, dropout=0.2)).train()
        state = State(model, replace(CONFIG, recompute=recompute), token_loss(CONFIG))
        torch.manual_seed(1)
        state.module(batch).backward()
        found.append(gradients(model))
    assert_same(*found)


def test_a_batch_that_does_not_fit_is_split_and_counts_as_one(monkeypatch):
    model = random_model(EXACT)
    state, batch = State(model, CONFIG, token_loss(CONFIG)), pair_batch(PAIRS, EXACT)
    loss = add_gradients(state, [batch], len(batch.labels), CONFIG)
    whole = gradients(model)
    sizes = []
    original = losses.TokenLoss.of_hidden

    def only_small_ones(self, hidden, labels, projection):
        sizes.append(len(labels))
        if len(labels) > 7:
            raise torch.OutOfMemoryError
        return original(self, hidden, labels, projection)

    monkeypatch.setattr(losses.TokenLoss, "of_hidden", only_small_ones)
    assert add_gradients(state, [batch], len(batch.labels), CONFIG).item() == pytest.approx(loss.item(), abs=1e-6)
    assert_same(gradients(model), whole)
    assert sizes == [16, 10, 3, 7, 2, 4]  # the whole, its first half, then one pair after another


def test_a_pair_that_never_fits_is_named(monkeypatch):
    def never(*_):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(losses.TokenLoss, "of_hidden", never)
    state = State(random_model(EXACT), CONFIG, token_loss(CONFIG))
    with pytest.raises(Exception, match="a single example of 7 tokens does not fit"):
        next(train(state, [[pair_batch(PAIRS, EXACT)]], EXACT, CONFIG))


def test_a_bad_step_changes_no_weight_and_no_moment():
    model = random_model(EXACT)
    state = State(model, CONFIG, token_loss(CONFIG))
    good = pair_batch(PAIRS, EXACT)
    steps = train(state, [[good]] * 3, EXACT, CONFIG)
    next(steps)
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    moments = {name: state.optimizer.state[weight]["exp_avg"].clone() for name, weight in state.weights.items()}
    with torch.no_grad():
        kept = model.encoder.embedding.token.weight[5].clone()
        model.encoder.embedding.token.weight[5] = float("inf")
    assert next(steps).skipped.item() == 1
    with torch.no_grad():
        model.encoder.embedding.token.weight[5] = kept
    for name, weight in model.named_parameters():
        assert torch.equal(weight, before[name])
        assert torch.equal(state.optimizer.state[weight]["exp_avg"], moments[name])
    assert state.optimizer.state[weight]["step"].item() == 1
    assert next(steps).skipped.item() == 0


def test_the_guard_knows_an_explosion_from_a_hard_batch():
    guard = Guard(torch.device("cpu"))
    fine = torch.tensor(1.0)
    assert all(guard.judge(torch.tensor(4.0 + 0.5 * (n % 2)), fine) == 0 for n in range(40))
    assert guard.judge(torch.tensor(6.0), fine) == 0
    assert guard.judge(torch.tensor(9.5), fine) == 1
    assert guard.judge(torch.tensor(float("nan")), fine) == 1
    assert guard.judge(torch.tensor(4.0), torch.tensor(float("inf"))) == 1
    assert guard.judge(torch.tensor(4.0), fine) == 0


def test_the_average_follows_the_weights_and_forgets_its_start():
    config = replace(CONFIG, steps=60, ema=0.9, schedule="constant", learning_rate=1e-3)
    model = random_model(EXACT)
    start = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    state = State(model, config, token_loss(config))
    history = []
    for _ in train(state, [[pair_batch(PAIRS, EXACT)]] * 60, EXACT, config):
        history.append({name: weight.detach().clone() for name, weight in model.named_parameters()})
    expected = start
    for step, weights in enumerate(history, start=1):
        decay = min(0.9, (1 + step) / (10 + step))
        expected = {name: decay * expected[name] + (1 - decay) * weights[name] for name in weights}
    assert_same(state.kept_weights, expected, 1e-5)
