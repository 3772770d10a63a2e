"""Small translation models with random weights, as transformers saves them, with tokenisers that the tests train."""

import json

import sentencepiece
import torch
import transformers
from small_sentencepiece import train

SIZES = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
    "tie_word_embeddings": False,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "max_position_embeddings": 128, "dropout": 0.0,
}  # fmt: skip
PIECES = "sentencepiece.bpe.model"


def randomise(model, eos, seed=4):
    """Give a model random weights that write different words and end at many lengths. Return it.

    A tied output would mostly repeat the word that was read last.
    """
    random = torch.Generator().manual_seed(seed)
    config = model.config
    vocab = min(config.vocab_size, getattr(config, "decoder_vocab_size", config.vocab_size))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.requires_grad:  # not what transformers drew, which no seed of ours decides
                is_gain = "norm" in name and name.endswith("weight")
                weight.copy_(is_gain + 0.5 * torch.randn(weight.shape, generator=random))
        # A trained model never writes <pad>, after which the positions of M2M100 would not be counted.
        model.get_output_embeddings().weight[config.pad_token_id] = 0.0
        if getattr(model, "final_logits_bias", None) is not None:
            model.final_logits_bias = torch.randn(model.final_logits_bias.shape, generator=random)
        source, target = (torch.randint(4, vocab, (8, 12), generator=random) for _ in range(2))
        model.eval()
        for _ in range(3):
            logits = model(input_ids=source, decoder_input_ids=target).logits
            missing = (logits.amax(-1) - logits[..., eos]).quantile(0.1)
            if hasattr(model, "final_logits_bias"):
                model.final_logits_bias[:, eos] += missing
            else:  # the last norm shifts all activations toward the embedding of <eos>
                embedding = model.get_output_embeddings().weight[eos]
                model.model.decoder.layer_norm.bias += missing * embedding / embedding.square().sum()
    return model


def piece_names(data, first):
    library = sentencepiece.SentencePieceProcessor(model_proto=data)
    return [library.id_to_piece(index) for index in range(first, library.get_piece_size())]


def save_json(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")


def marian(folder, tags=(), separate=False, one=False, **settings):
    """Save a Marian checkpoint with its tokeniser and return both; `one`: both sides have the same pieces."""
    files = folder / "files"
    files.mkdir(parents=True)
    data = {"source": train(), "target": train() if one else train(model_type="bpe", vocab_size=240)}
    for side, model in data.items():
        (files / f"{side}.spm").write_bytes(model)
    pieces = {side: piece_names(model, 3) for side, model in data.items()}

    def table(names):
        tokens = dict.fromkeys(["</s>", "<unk>", *tags, *names, "<pad>"])
        return {token: index for index, token in enumerate(tokens)}

    tables = [table(pieces["source"]), table(pieces["target"])] if separate else [
        table([*pieces["source"], *pieces["target"]])
    ]  # fmt: skip
    for name, each in zip(("vocab.json", "target_vocab.json"), tables, strict=False):
        save_json(files / name, each)
    tokenizer = transformers.MarianTokenizer(
        str(files / "source.spm"), str(files / "target.spm"), str(files / "vocab.json"), separate_vocabs=separate,
        target_vocab_file=str(files / "target_vocab.json") if separate else None, source_lang="en",
        target_lang="fr" if not tags else "ROMANCE",
    )  # fmt: skip
    pad = tables[-1]["<pad>"]
    # Of separate vocabularies, the one with the smaller <pad> has to do for both.
    pad = min(table["<pad>"] for table in tables)
    config = transformers.MarianConfig(
        vocab_size=len(tables[0]), decoder_vocab_size=len(tables[-1]), share_encoder_decoder_embeddings=not separate,
        pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad, activation_function="swish", scale_embedding=True,
        forced_eos_token_id=None, **SIZES, **settings,
    )  # fmt: skip
    model = randomise(transformers.MarianMTModel(config), 0, seed=4)
    return save(folder, model, tokenizer)


def m2m100(folder, **settings):
    """Save an M2M100 checkpoint with its tokeniser and return both."""
    files = folder / "files"
    files.mkdir(parents=True)
    data = train(model_type="bpe")
    (files / PIECES).write_bytes(data)
    save_json(files / "vocab.json", fairseq_table(piece_names(data, 3)))
    tokenizer = transformers.M2M100Tokenizer(
        str(files / "vocab.json"), str(files / PIECES), src_lang="en", tgt_lang="zh"
    )
    return save(folder, m2m_model(len(fairseq_table(piece_names(data, 3))) + 108, **settings), tokenizer)


def fairseq_table(names):
    return {token: index for index, token in enumerate(dict.fromkeys(["<s>", "<pad>", "</s>", "<unk>", *names]))}


def m2m_model(vocab, **settings):
    config = transformers.M2M100Config(
        vocab_size=vocab, encoder_layerdrop=0.0, decoder_layerdrop=0.0, scale_embedding=True, attention_dropout=0.0,
        **SIZES, **settings,
    )  # fmt: skip
    return randomise(transformers.M2M100ForConditionalGeneration(config), 2)


def nllb(folder, **settings):
    """Save a checkpoint of NLLB with its tokeniser and return both."""
    files = folder / "files"
    files.mkdir(parents=True)
    (files / PIECES).write_bytes(train(model_type="bpe"))
    from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

    tokenizer = transformers.NllbTokenizer.from_pretrained(
        files, src_lang="eng_Latn", tgt_lang="zho_Hans", extra_special_tokens=FAIRSEQ_LANGUAGE_CODES
    )
    return save(folder, m2m_model(len(tokenizer), **settings), tokenizer)


def mbart(folder, fifty=True, start=2):
    """Save a checkpoint of mBART, of 50 or of 25 languages, with its tokeniser and return both."""
    files = folder / "files"
    files.mkdir(parents=True)
    (files / PIECES).write_bytes(train())
    kind = transformers.MBart50Tokenizer if fifty else transformers.MBartTokenizer
    tokenizer = kind.from_pretrained(files, src_lang="en_XX", tgt_lang="ro_RO")
    config = transformers.MBartConfig(
        vocab_size=len(tokenizer), decoder_start_token_id=start if fifty else tokenizer.convert_tokens_to_ids("ro_RO"),
        forced_eos_token_id=None, scale_embedding=True, **SIZES,
    )  # fmt: skip
    return save(folder, randomise(transformers.MBartForConditionalGeneration(config), 2), tokenizer)


def save(folder, model, tokenizer):
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return model, tokenizer
