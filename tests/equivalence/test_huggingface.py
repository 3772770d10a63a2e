import json

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import save_file
from small_models import SMALL

from sixfold.errors import ModelFileError, RequestError
from sixfold.explorer.forward import forward
from sixfold.interop.huggingface import export_weights, load_folder, translate
from sixfold.interop.weight_names import FAMILIES
from sixfold.model.transformer import build, load_model, weights_of

VOCAB = 120
SHAPES = {"small": (32, 4, 2, 64), "deep": (16, 2, 5, 24), "wide": (64, 8, 1, 160)}


FILLED_IN = ("num_key_value_heads", "head_dim", "n_inner", "decoder_vocab_size")  # from other settings


def marian(d_model, heads, layers, d_ff, **more):
    config = transformers.MarianConfig(
        vocab_size=VOCAB, d_model=d_model, encoder_layers=layers, decoder_layers=layers + 1, encoder_ffn_dim=d_ff,
        decoder_ffn_dim=d_ff, encoder_attention_heads=heads, decoder_attention_heads=heads, pad_token_id=0,
        eos_token_id=1, decoder_start_token_id=0, max_position_embeddings=40, scale_embedding=True, **more,
    )  # fmt: skip
    model = transformers.MarianMTModel(config)
    model.final_logits_bias = torch.randn_like(model.final_logits_bias)
    return model


def m2m_100(d_model, heads, layers, d_ff, **more):
    return transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(
        vocab_size=VOCAB, d_model=d_model, encoder_layers=layers, decoder_layers=layers + 1, encoder_ffn_dim=d_ff,
        decoder_ffn_dim=d_ff, encoder_attention_heads=heads, decoder_attention_heads=heads, max_position_embeddings=40,
        encoder_layerdrop=0.0, decoder_layerdrop=0.0, **more,
    ))  # fmt: skip


def mbart(d_model, heads, layers, d_ff, **more):
    model = transformers.MBartForConditionalGeneration(transformers.MBartConfig(
        vocab_size=VOCAB, d_model=d_model, encoder_layers=layers, decoder_layers=layers + 1, encoder_ffn_dim=d_ff,
        decoder_ffn_dim=d_ff, encoder_attention_heads=heads, decoder_attention_heads=heads, max_position_embeddings=40,
        decoder_start_token_id=2, **more,
    ))  # fmt: skip
    model.final_logits_bias = torch.randn_like(model.final_logits_bias)
    return model


def bert(d_model, heads, layers, d_ff, head=transformers.BertForMaskedLM, **more):
    return head(transformers.BertConfig(
        vocab_size=VOCAB, hidden_size=d_model, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=d_ff, max_position_embeddings=40, **more,
    ))  # fmt: skip


def gpt2(d_model, heads, layers, d_ff, **more):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=VOCAB, n_embd=d_model, n_head=heads, n_layer=layers, n_inner=d_ff, n_positions=40, bos_token_id=1,
        eos_token_id=1, **more,
    ))  # fmt: skip


def llama(d_model, heads, layers, d_ff, kv_heads=None, **more):
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=VOCAB, hidden_size=d_model, num_attention_heads=heads, num_key_value_heads=kv_heads or heads,
        num_hidden_layers=layers, intermediate_size=d_ff, max_position_embeddings=40, **more,
    ))  # fmt: skip


def qwen2(d_model, heads, layers, d_ff, kv_heads=None, **more):
    return transformers.Qwen2ForCausalLM(transformers.Qwen2Config(
        vocab_size=VOCAB, hidden_size=d_model, num_attention_heads=heads, num_key_value_heads=kv_heads or heads,
        num_hidden_layers=layers, intermediate_size=d_ff, max_position_embeddings=40, bos_token_id=1, eos_token_id=2,
        **more,
    ))  # fmt: skip


def mistral(d_model, heads, layers, d_ff, kv_heads=None, **more):
    return transformers.MistralForCausalLM(transformers.MistralConfig(
        vocab_size=VOCAB, hidden_size=d_model, num_attention_heads=heads, num_key_value_heads=kv_heads or heads,
        num_hidden_layers=layers, intermediate_size=d_ff, max_position_embeddings=40, **{"sliding_window": 4, **more},
    ))  # fmt: skip


LLAMA_3 = {
    "rope_type": "llama3", "rope_theta": 100.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 20,
}  # fmt: skip
CASES = {
    f"{make.__name__} {name}": (make, shape, {})
    for make in (marian, m2m_100, mbart, bert, gpt2, llama, qwen2, mistral)
    for name, shape in SHAPES.items()
}
CASES |= {
    "marian untied": (marian, SHAPES["small"], {"tie_word_embeddings": False}),
    "marian swish": (marian, SHAPES["small"], {"activation_function": "swish"}),
    "marian separate": (
        marian, SHAPES["small"], {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": VOCAB - 20},
    ),
    "marian separate and untied": (
        marian, SHAPES["small"], {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
    ),
    "m2m_100 unscaled": (m2m_100, SHAPES["small"], {"scale_embedding": False}),
    "mbart untied": (mbart, SHAPES["small"], {"tie_word_embeddings": False}),
    "m2m_100 untied": (m2m_100, SHAPES["small"], {"tie_word_embeddings": False}),
    "mbart scaled": (mbart, SHAPES["small"], {"scale_embedding": True}),
    "marian relu": (marian, SHAPES["small"], {"activation_function": "relu"}),
    "llama grouped-query": (llama, SHAPES["small"], {"kv_heads": 2}),
    "llama multi-query": (llama, SHAPES["wide"], {"kv_heads": 1}),
    "llama tied": (llama, SHAPES["small"], {"tie_word_embeddings": True}),
    "llama 3": (llama, SHAPES["small"], {"kv_heads": 2, "rope_parameters": LLAMA_3, "tie_word_embeddings": True}),
    "llama with wide heads": (llama, SHAPES["small"], {"head_dim": 12}),
    "llama with linear scaling": (
        llama, SHAPES["small"], {"rope_parameters": {"rope_theta": 100.0, "rope_type": "linear", "factor": 2.5}},
    ),
    "llama with biases": (llama, SHAPES["small"], {"attention_bias": True, "mlp_bias": True}),
    "qwen2 grouped-query": (qwen2, SHAPES["small"], {"kv_heads": 1, "tie_word_embeddings": True}),
    "qwen2 with a window": (
        qwen2, SHAPES["small"], {"use_sliding_window": True, "sliding_window": 3, "max_window_layers": 0},
    ),
    "mistral without a window": (mistral, SHAPES["small"], {"sliding_window": None}),
    "mistral with wide heads": (mistral, SHAPES["small"], {"head_dim": 10, "kv_heads": 2}),
    "gpt2 untied": (gpt2, SHAPES["small"], {"tie_word_embeddings": False}),
    "llama with another base": (
        llama, SHAPES["small"], {"rope_parameters": {"rope_theta": 500.0, "rope_type": "default"}},
    ),
}  # fmt: skip


def with_noise(model):
    """Add noise to all weights: the biases of 0 and gains of 1 of a new model would hide mistakes."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight += 0.05 * torch.randn_like(weight)
    return model.eval()


def save_and_load(model, folder):
    """Save a model as a user does, and load the folder."""
    model.save_pretrained(folder)
    return load_folder(folder)


def our_model(file):
    return load_model(file.config.model, file.weights()).eval()


def batch():
    padding = torch.ones(3, 9, dtype=torch.bool)
    padding[1, 6:] = padding[2, 3:] = False
    return torch.randint(3, VOCAB, (3, 9)).masked_fill(~padding, 0), torch.randint(3, VOCAB - 20, (3, 6)), padding


def all_logits(hf_model, file, source, target, padding):
    """Return the logits at real positions: those of transformers, of our model and of the NumPy forward pass."""
    model = our_model(file)
    kind = file.config.model.kind
    if kind == "encoder-decoder":
        hf_logits = hf_model(input_ids=source, attention_mask=padding.long(), decoder_input_ids=target).logits
        trace = forward(file, source.numpy(), target.numpy(), padding.numpy())
        return hf_logits, model(source, target, padding), trace["logits"]
    if kind == "encoder":
        types = torch.randint(0, 2, source.shape)
        hf_logits = hf_model(input_ids=source, attention_mask=padding.long(), token_type_ids=types).logits
        trace = forward(file, source.numpy(), padding=padding.numpy(), types=types.numpy())
        return hf_logits[padding], model(source, padding, types)[padding], trace["logits"][padding.numpy()]
    return hf_model(input_ids=source).logits, model(source), forward(file, target=source.numpy())["logits"]


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_logits_equal_transformers(name, tmp_path):
    torch.manual_seed(0)
    make, shape, more = CASES[name]
    hf_model = with_noise(make(*shape, **more))
    hf_logits, model, numpy = all_logits(hf_model, save_and_load(hf_model, tmp_path), *batch())
    assert hf_logits.std() > 0.05
    torch.testing.assert_close(model, hf_logits, rtol=0, atol=1e-4)
    np.testing.assert_allclose(numpy, hf_logits.numpy(), rtol=0, atol=1e-4)


@torch.no_grad()
def test_a_sentence_encoder_without_a_head_loads(tmp_path):
    hf_model = with_noise(bert(*SHAPES["small"], head=transformers.BertModel))
    file = save_and_load(hf_model, tmp_path)
    source, _, padding = batch()
    hidden = hf_model(input_ids=source, attention_mask=padding.long()).last_hidden_state
    torch.testing.assert_close(our_model(file).hidden(source, padding)[padding], hidden[padding], rtol=0, atol=1e-4)


@torch.no_grad()
def test_an_old_pickled_checkpoint_loads(tmp_path):
    hf_model = with_noise(gpt2(*SHAPES["small"]))
    hf_model.save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    # The original GPT-2 files leave out the prefix and carry their masks.
    state = {
        name.removeprefix("transformer."): weight
        for name, weight in hf_model.state_dict().items()
        if "lm_head" not in name
    }
    state |= {"h.0.attn.bias": torch.ones(1, 1, 40, 40), "h.0.attn.masked_bias": torch.tensor(-1e4)}
    torch.save(state, tmp_path / "pytorch_model.bin")
    tokens, _, _ = batch()
    torch.testing.assert_close(our_model(load_folder(tmp_path))(tokens), hf_model(tokens).logits, rtol=0, atol=1e-4)


@torch.no_grad()
def test_shards_are_put_together(tmp_path):
    hf_model = with_noise(llama(*SHAPES["wide"]))
    hf_model.save_pretrained(tmp_path, max_shard_size="60KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    tokens, _, _ = batch()
    torch.testing.assert_close(our_model(load_folder(tmp_path))(tokens), hf_model(tokens).logits, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "name",
    [
        "marian small",
        "marian separate",
        "marian untied",
        "m2m_100 small",
        "mbart small",
        "bert small",
        "gpt2 small",
        "llama grouped-query",
        "llama tied",
        "llama 3",
        "qwen2 grouped-query",
        "mistral with wide heads",
    ],
)
@torch.no_grad()
def test_weights_go_back_as_they_came(name, tmp_path):
    make, shape, more = CASES[name]
    hf_model = with_noise(make(*shape, **more))
    file = save_and_load(hf_model, tmp_path)
    exported = export_weights(file.config.model, file.weights(), hf_model.config.model_type)
    state = hf_model.state_dict()
    for weight, array in exported.items():
        np.testing.assert_array_equal(array, state[weight].numpy())
    fresh = make(*shape, **more).eval()
    problems = fresh.load_state_dict(
        {weight: torch.from_numpy(array.copy()) for weight, array in exported.items()},
        strict=False,
    )
    assert not problems.unexpected_keys
    source, target, padding = batch()
    torch.testing.assert_close(*all_logits(fresh, file, source, target, padding)[:2], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["marian small", "bert small", "gpt2 small", "llama small", "qwen2 small", "mistral small"]
)
@torch.no_grad()
def test_a_config_may_leave_out_what_transformers_assumes(name, tmp_path):
    """Old configs on the Hub lack newer settings, so this test removes the settings that have their default value."""
    make, shape, more = CASES[name]
    hf_model = with_noise(make(*shape, **more))
    file = save_and_load(hf_model, tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    silent = {key for key, value in FAMILIES[settings["model_type"]].defaults.items() if settings.get(key) == value}
    assert len(silent) >= 2
    (tmp_path / "config.json").write_text(json.dumps({k: v for k, v in settings.items() if k not in silent}))
    assert load_folder(tmp_path).config == file.config


@pytest.mark.parametrize("kind", FAMILIES)
def test_defaults_are_those_of_transformers(kind):
    fresh = transformers.AutoConfig.for_model(kind).to_dict()
    for key, value in FAMILIES[kind].defaults.items():
        if key in fresh:
            assert fresh[key] == value or (value is None and key in FILLED_IN), key
    for key, value in FAMILIES[kind].required.items():
        assert fresh.get(key, value) == value, key


@pytest.mark.parametrize(
    ("make", "flag"),
    [
        (bert, {"is_decoder": True}),
        (bert, {"tie_word_embeddings": False}),
        (gpt2, {"scale_attn_weights": False}),
        (gpt2, {"scale_attn_by_inverse_layer_idx": True}),
    ],
)
def test_a_flag_that_changes_what_is_computed_is_refused(make, flag, tmp_path):
    with pytest.raises(ModelFileError, match=f"config.json: {next(iter(flag))}: expected"):
        save_and_load(make(*SHAPES["small"], **flag), tmp_path)


def test_a_weight_of_another_shape_is_named(tmp_path):
    hf_model = gpt2(*SHAPES["small"])
    hf_model.save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(settings | {"n_inner": 65}))
    with pytest.raises(ModelFileError, match=r"feed_forward\.up\.weight is \(64, 32\), expected \(65, 32\)"):
        load_folder(tmp_path)
    arrays = {name: weight.detach().numpy() for name, weight in hf_model.named_parameters()}
    arrays["transformer.h.0.mlp.c_fc.weight"] = arrays["transformer.h.0.mlp.c_fc.weight"].T
    with pytest.raises(ModelFileError, match=r"is \(32, 64\), expected \(64, 32\)"):
        translate(settings, arrays)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x80\x02}q\x00.", b"cos\nsystem\n(S'true'\ntR."])
def test_a_pickle_of_anything_but_tensors_is_one_line(content, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    (tmp_path / "pytorch_model.bin").write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        load_folder(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "settings", [[], {"model_type": "llama", "hidden_size": "32"}, {"model_type": "llama", "rope_scaling": "x"}]
)
def test_a_config_of_the_wrong_types_is_one_line(settings, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(settings))
    save_file({"x": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(ModelFileError):
        load_folder(tmp_path)


def test_a_model_of_another_family_is_not_exported():
    with pytest.raises(RequestError, match=r"gpt2: expected .* no weights encoder\.embedding\.token\.weight"):
        export_weights(SMALL, weights_of(build(SMALL)), "gpt2")


@pytest.mark.parametrize("odd", [np.zeros((), np.float32), np.zeros((3, 3), np.float32)])
def test_a_part_that_does_not_fit_its_neighbours_is_named(odd):
    hf_model = llama(*SHAPES["small"])
    arrays = {name: weight.detach().numpy() for name, weight in hf_model.named_parameters()}
    arrays["model.layers.0.self_attn.q_proj.weight"] = odd
    with pytest.raises(ModelFileError, match=r"query_key_value\.weight is .*, expected \(96, 32\)"):
        translate(hf_model.config.to_dict(), arrays)


def test_all_missing_and_unexpected_weights_are_named():
    hf_model = gpt2(*SHAPES["small"])
    arrays = {name: weight.detach().numpy() for name, weight in hf_model.named_parameters()}
    del arrays["transformer.h.0.ln_1.weight"], arrays["transformer.h.1.mlp.c_fc.bias"]
    arrays["transformer.h.9.extra"] = np.zeros(1, np.float32)
    with pytest.raises(ModelFileError) as caught:
        translate(hf_model.config.to_dict(), arrays)
    faults = ("missing transformer.h.0.ln_1.weight", "missing transformer.h.1.mlp.c_fc.bias")
    assert all(fault in str(caught.value) for fault in (*faults, "unexpected transformer.h.9.extra"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model_type": "t5"}, f"expected a model_type of {', '.join(FAMILIES)}; got 't5'"),
        ({"model_type": "llama", "rope_parameters": {"rope_type": "yarn"}},
         "rope type: expected one of default, linear, llama3; got 'yarn'"),
        ({"model_type": "llama", "rope_parameters": {"rope_type": "llama3", "factor": 8.0}},
         "rope type llama3: expected low_freq_factor, high_freq_factor, original_max_position_embeddings; found none"),
        ({"model_type": "llama", "rope_parameters": {"partial_rotary_factor": 0.5}},
         "partial_rotary_factor: expected 1; got 0.5"),
        ({"model_type": "qwen2", "layer_types": ["full_attention", "sliding_attention"]},
         "layer_types: expected one kind for all layers; got full_attention, sliding_attention"),
        ({"model_type": "gpt2", "activation_function": "mish", "eos_token_id": 1, "vocab_size": 9, "n_embd": 4,
          "n_head": 2, "n_layer": 1, "n_positions": 9}, "activation_function: expected one of"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_refused_by_name(settings, message, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 8, "num_attention_heads": 2} | settings))
    save_file({"x": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(ModelFileError, match=message):
        load_folder(tmp_path)


def test_a_folder_without_a_checkpoint_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match=r"config\.json: No such file"):
        load_folder(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelFileError, match=r"expected model\.safetensors"):
        load_folder(tmp_path)
