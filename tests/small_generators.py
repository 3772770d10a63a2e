"""Small decoder-only models with random weights, as transformers saves them, with tokenisers that the tests train."""

import json
from dataclasses import replace

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from sixfold import modelfile
from sixfold.interop.huggingface import load_folder

TEXTS = [
    "Once upon a time there was a little girl who lived near the forest.",
    "The quick brown fox jumps over the lazy dog, and it's 12:30 already!",
    "Attention is all you need. The dominant models have an encoder and a decoder.",
    "机器学习很有趣，注意力就是一切。", "naïve café — 3.14 × 10⁵", "How are you? I am fine, thank you.",
]  # fmt: skip
CHAT_TOKENS = ["<|im_start|>", "<|im_end|>"]
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{{ '<|im_start|>assistant\\n' }}"
)


def byte_level(specials=("<|endoftext|>",), vocab=420):
    """Return a tokeniser such as those of GPT-2 and Llama 3."""
    rust = tokenizers.Tokenizer(models.BPE())
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=list(specials), initial_alphabet=alphabet)
    rust.train_from_iterator(TEXTS * 3, trainer)
    return rust


def byte_fallback(vocab=520):
    """Return a tokeniser such as that of LLaMA 2, which writes a space as ▁ and puts <s> before a text."""
    specials = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    rust = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    rust.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    rust.train_from_iterator(TEXTS * 3, trainers.BpeTrainer(vocab_size=vocab, special_tokens=specials))
    state = json.loads(rust.to_str())
    state["added_tokens"] = state["added_tokens"][:3]  # bytes are no special tokens; the trainer knows no other way
    rust = tokenizers.Tokenizer.from_str(json.dumps(state))
    rust.decoder = decoders.Sequence([
        decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)
    ])  # fmt: skip
    rust.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return rust


def randomise(model, seed=1, spread=0.3):
    """Give a model weights that write many different tokens: a tied output would mostly repeat the last one."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            is_gain = ("norm" in name or "ln_" in name) and name.endswith("weight")
            weight.copy_(is_gain + spread * torch.randn(weight.shape, generator=random))
    return model.eval()


def gpt2(folder, **settings):
    """Save a small GPT-2 whose tokeniser has the tokens of a chat; return the model and the tokeniser."""
    rust = byte_level(["<|endoftext|>", *CHAT_TOKENS])
    end = rust.token_to_id("<|endoftext|>")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=rust, bos_token="<|endoftext|>", eos_token="<|endoftext|>"
    )
    config = transformers.GPT2Config(**{
        "vocab_size": rust.get_vocab_size(), "n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 96,
        "bos_token_id": end, "eos_token_id": end, "tie_word_embeddings": False, **settings,
    })  # fmt: skip
    return save(folder, randomise(transformers.GPT2LMHeadModel(config)), tokenizer)


def llama(folder, **settings):
    """Save a small LLaMA with grouped queries and the tokeniser of `byte_fallback`; return both."""
    rust = byte_fallback()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=rust, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    config = transformers.LlamaConfig(**{
        "vocab_size": rust.get_vocab_size(), "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 2, "intermediate_size": 48, "max_position_embeddings": 96, **settings,
    })  # fmt: skip
    model = randomise(transformers.LlamaForCausalLM(config))
    with torch.no_grad():
        model.lm_head.weight[3:259] = 0.0  # seldom bytes: those that are no character depend on the tokens after them
    return save(folder, model, tokenizer)


LLAMA_3 = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 24,
}  # fmt: skip


QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def with_bos():
    """Return a tokeniser such as that of Llama 3, which puts a token before a text."""
    rust = byte_level(["<|endoftext|>", *CHAT_TOKENS])
    rust.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", rust.token_to_id("<|endoftext|>"))]
    )
    return rust


def with_words_of_qwen2():
    """Return a tokeniser such as that of Qwen2. transformers has this normaliser and these words in its code."""
    rust = byte_level(["<|endoftext|>", *CHAT_TOKENS])
    rust.normalizer = normalizers.NFC()
    words = pre_tokenizers.Split(tokenizers.Regex(QWEN2_WORDS), "isolated")
    rust.pre_tokenizer = pre_tokenizers.Sequence([words, pre_tokenizers.ByteLevel(False, use_regex=False)])
    return rust


def rotary_decoder(folder, model, config, rust, settings):
    """Save a small model with a tokeniser that has the tokens of a chat; two tokens end its texts."""
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=rust, bos_token="<|endoftext|>", eos_token=CHAT_TOKENS[1]
    )
    ends = [rust.token_to_id(token) for token in (CHAT_TOKENS[1], "<|endoftext|>")]
    random = randomise(model(config(**{
        "vocab_size": rust.get_vocab_size(), "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
        "num_hidden_layers": 2, "intermediate_size": 48, "max_position_embeddings": 96,
        "bos_token_id": rust.token_to_id("<|endoftext|>"), "eos_token_id": ends, **settings,
    })))  # fmt: skip
    with torch.no_grad():
        random.lm_head.weight[3:259] = 0.0  # seldom bytes, as in `llama`
    return save(folder, random, tokenizer)


def llama_3(folder, **settings):
    """Save a small LLaMA with scaled angles and wide heads; return the model and its tokeniser."""
    changes = {"rope_parameters": LLAMA_3, "head_dim": 12, **settings}
    return rotary_decoder(folder, transformers.LlamaForCausalLM, transformers.LlamaConfig, with_bos(), changes)


def qwen2(folder, **settings):
    """Save a small Qwen2; return the model and its tokeniser."""
    return rotary_decoder(
        folder, transformers.Qwen2ForCausalLM, transformers.Qwen2Config, with_words_of_qwen2(), settings
    )


def mistral(folder, **settings):
    """Save a small Mistral, whose window is shorter than the texts that it writes; return both."""
    changes = {"sliding_window": 6, **settings}
    return rotary_decoder(folder, transformers.MistralForCausalLM, transformers.MistralConfig, with_bos(), changes)


def save(folder, model, tokenizer):
    """Save both as a user does."""
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model, tokenizer


MAKERS = {"gpt2": gpt2, "llama": llama, "llama 3": llama_3, "qwen2": qwen2, "mistral": mistral}


def model_file(folder, path, **changes):
    """Import a checkpoint as `sixfold import` does, with changes of its format of prompts; return the path."""
    file = load_folder(folder)
    modelfile.save(
        path, file.config, file.weights(), file.tokenizer, file.card,
        prompt_format=replace(file.prompt_format, **changes),
    )  # fmt: skip
    return path
