import math
from dataclasses import replace

import pytest
import torch
from small_models import SMALL, random_model
from small_tasks import token_loss

from sixfold.config import TrainingConfig
from sixfold.model.precision import compute_type, library_settings
from sixfold.model.transformer import build, weights_of
from sixfold.tasks.loss import smoothed_cross_entropy
from sixfold.tasks.translation import TranslationTask
from sixfold.tasks.translation_batches import pair_batch
from sixfold.training import defaults
from sixfold.training.loop import train
from sixfold.training.schedule import learning_rate
from sixfold.training.state import State

PAIRS = [([5, 6, 7], [8, 9]), ([4], [10, 11, 12, 13, 14, 15]), ([6, 6], [7]), ([9, 8, 7, 6, 5, 4], [4, 5, 6])]
CONFIG = TrainingConfig(steps=1, warmup=1, learning_rate=1e-2)
EXACT = replace(SMALL, dropout=0.0)


def step(micro_batches, config=CONFIG):
    (metrics,) = train(State(random_model(EXACT), config, token_loss(config)), [micro_batches], EXACT, config)
    return metrics


@pytest.mark.usefixtures("double_precision")
def test_ragged_micro_batches_add_up_to_the_whole_batch(monkeypatch):
    seen = []

    def look(optimizer):
        seen.append([weight.grad.clone() for group in optimizer.param_groups for weight in group["params"]])

    monkeypatch.setattr(torch.optim.AdamW, "step", look)
    whole = step([pair_batch(PAIRS, EXACT)])
    parts = step([pair_batch(PAIRS[:1], EXACT), pair_batch(PAIRS[1:3], EXACT), pair_batch(PAIRS[3:], EXACT)])
    assert parts.loss.item() == pytest.approx(whole.loss.item(), abs=1e-6)
    assert parts.tokens == whole.tokens == 16
    for one, other in zip(*seen, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_teacher_forcing_shifts_the_target():
    batch = pair_batch(PAIRS[:2], EXACT)
    assert batch.source.tolist() == [[5, 6, 7, 2], [4, 2, 0, 0]]
    assert batch.source_padding.tolist() == [[True] * 4, [True, True, False, False]]
    assert batch.target.tolist() == [[1, 8, 9, 0, 0, 0, 0], [1, 10, 11, 12, 13, 14, 15]]
    assert batch.labels.tolist() == [8, 9, 2, 10, 11, 12, 13, 14, 15, 2]
    assert batch.label_positions.tolist() == [0, 1, 2, 7, 8, 9, 10, 11, 12, 13]


def test_the_loss_is_the_definition():
    logits = torch.randn(3, 5)
    labels = torch.tensor([1, 0, 4])
    expected = 0.0
    for row, label in enumerate(labels.tolist()):
        logprobs = logits[row].log_softmax(-1)
        expected -= 0.9 * logprobs[label].item() + 0.1 * logprobs.mean().item()
    assert smoothed_cross_entropy(logits, labels, 0.1).item() == pytest.approx(expected, rel=1e-5)


def test_noam_is_the_papers_formula():
    config = TrainingConfig(schedule="noam", learning_rate=1.0, warmup=4000)
    for step_number in (1, 100, 4000, 4001, 90000):
        expected = 512**-0.5 * min(step_number**-0.5, step_number * 4000**-1.5)
        assert learning_rate(config, 512, step_number) == pytest.approx(expected)


@pytest.mark.parametrize("schedule", ["inverse-sqrt", "cosine", "constant"])
def test_schedules_rise_to_their_peak_at_the_end_of_warm_up(schedule):
    config = TrainingConfig(schedule=schedule, learning_rate=0.5, warmup=10, steps=100)
    rates = [learning_rate(config, 512, number) for number in range(1, 101)]
    assert rates[:10] == pytest.approx([0.05 * number for number in range(1, 11)])
    assert max(rates) == pytest.approx(0.5)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    end = {"inverse-sqrt": 0.5 * math.sqrt(0.1), "cosine": 0.0, "constant": 0.5}[schedule]
    assert rates[-1] == pytest.approx(end, abs=1e-6)


def test_the_same_seed_trains_the_same_weights():
    def final():
        model = build(SMALL, seed=1)
        config = TrainingConfig(steps=5, warmup=2)
        for _ in train(State(model, config, token_loss(config)), [[pair_batch(PAIRS, SMALL)]] * 5, SMALL, config):
            pass
        return weights_of(model)

    first, second = final(), final()
    assert all((first[name] == second[name]).all() for name in first)


@pytest.mark.usefixtures("double_precision")
def test_a_clipped_gradient_is_reported_at_its_full_size():
    clipped = step([pair_batch(PAIRS, EXACT)], replace(CONFIG, clip=1e-3))
    unclipped = step([pair_batch(PAIRS, EXACT)], replace(CONFIG, clip=0.0))
    assert unclipped.gradient_norm > 0.01
    assert clipped.gradient_norm == pytest.approx(unclipped.gradient_norm.item())


@pytest.mark.parametrize(
    ("steps", "validations"), [(1, 1), (12, 1), (40, 2), (500, 20), (1000, 20), (40_000, 20), (200_000, 100)]
)
def test_a_run_validates_at_its_end_and_a_short_one_hardly_more_often(steps, validations):
    every = defaults.complete(TrainingConfig(steps=steps), 1000, lambda _: 1, "cpu").validate_every
    assert -(-steps // every) == validations


def test_the_kept_model_is_not_chosen_by_a_bleu_that_is_noise():
    early = {"bleu": 2.95, "chrf": 8.0, "loss": 5.0}
    late = {"bleu": 2.00, "chrf": 14.8, "loss": 4.25}
    good = {"bleu": 30.1, "chrf": 55.0, "loss": 1.5}
    best = {"bleu": 30.2, "chrf": 54.9, "loss": 1.6}

    def rank_of(values, measure):
        return TranslationTask(("", "")).rank(values, TrainingConfig(score=measure))

    by_auto = [rank_of(values, "auto") for values in (early, late, good, best)]
    assert by_auto == sorted(by_auto)
    assert rank_of({**late, "bleu": 9.9}, "auto") < rank_of({**early, "bleu": 10.1}, "auto")
    assert rank_of(early, "bleu") > rank_of(late, "bleu"), "who asks for BLEU gets it"
    assert rank_of(good, "chrf") > rank_of(best, "chrf")
    assert rank_of(good, "loss") > rank_of(best, "loss")


@pytest.mark.parametrize("option", [{}, {"positions": "learned", "tie_output": False}, {"norm": "rms", "bias": False}])
def test_weight_decay_spares_norms_biases_and_tables(option):
    """With a gradient of zero, AdamW changes a weight by its decay alone."""
    config = replace(CONFIG, weight_decay=0.1, ema=0.0)
    state = State(random_model(replace(EXACT, **option)), config, token_loss(config))
    before = {name: weight.detach().clone() for name, weight in state.weights.items()}
    for weight in state.weights.values():
        weight.grad = torch.zeros_like(weight)
    state.optimizer.step()
    changed = {name for name, weight in state.weights.items() if not torch.equal(weight, before[name])}
    spared = {name for name in before if ".embedding." in name or "norm" in name or name.endswith("bias")}
    assert changed == before.keys() - spared
    assert ("output.projection.weight" in changed) == ("tie_output" in option)


def test_bf16_is_chosen_only_where_the_gpu_has_it():
    bf16, full = torch.bfloat16, torch.float32
    assert compute_type("auto", "cuda", has_bf16=True) == bf16
    assert compute_type("auto", "cuda", has_bf16=False) == full
    assert compute_type("auto", "cpu", has_bf16=False) == full
    assert compute_type("float32", "cuda", has_bf16=True) == full
    assert compute_type("bf16", "cpu", has_bf16=False) == bf16, "who asks for it gets it"


@pytest.mark.parametrize(("precision", "inside"), [("auto", "high"), ("bf16", "high"), ("float32", "highest")])
def test_float32_means_no_tf32_and_what_is_set_for_the_process_is_set_back(precision, inside):
    def settings():
        return torch.get_float32_matmul_precision(), torch.backends.cuda.cudnn_sdp_enabled()

    before = settings()
    try:
        torch.set_float32_matmul_precision("medium")
        outside = settings()
        with library_settings(precision, torch.device("cuda")):
            assert settings() == (inside, False)
        assert settings() == outside
        with library_settings(precision, torch.device("cpu")):
            assert settings()[0] == "highest", "a CPU has no TF32 to gain from"
        assert settings() == outside
    finally:
        torch.set_float32_matmul_precision(before[0])
