"""Checkpoints that write texts: their tokenisers, the tokens around a prompt, and their chat templates."""

import json

import pytest
import sentencepiece
import small_generators as generators
import small_sentencepiece
import transformers
from commands import run_here

from sixfold import modelfile
from sixfold.errors import ModelFileError
from sixfold.interop.huggingface import load_folder
from sixfold.text.prompt_format import PromptFormat
from sixfold.text.tokenizer import Tokenizer

PROMPTS = [*generators.TEXTS, "", " two  spaces ", "龘😀\n\ttab", "<|im_start|>user\nhi<|im_end|>\n"]


@pytest.fixture(params=generators.MAKERS)
def folder(request, tmp_path):
    generators.MAKERS[request.param](tmp_path)
    return tmp_path


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def prompts_of(file):
    return [[*file.prompt_format.before, *ids] for ids in file.tokenizer.encode_batch(PROMPTS)]


def peer_prompts(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return [tokenizer(text).input_ids for text in PROMPTS]


def test_prompts_are_those_of_transformers(folder):
    assert prompts_of(load_folder(folder)) == peer_prompts(folder)


def test_a_length_that_a_tokeniser_was_saved_with_does_not_cut_prompts(folder):
    rust = transformers.AutoTokenizer.from_pretrained(folder).backend_tokenizer
    rust.enable_truncation(3)
    rust.enable_padding(length=50)
    rust.save(str(folder / "tokenizer.json"))
    assert prompts_of(load_folder(folder)) == peer_prompts(folder)


def test_gpt2_folders_without_tokenizer_json_have_the_same_prompts(tmp_path):
    generators.gpt2(tmp_path)
    expected = prompts_of(load_folder(tmp_path))
    state = json.loads((tmp_path / "tokenizer.json").read_text())["model"]
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.json").write_text(json.dumps(state["vocab"]))
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{' '.join(pair)}\n" for pair in state["merges"]))
    file = load_folder(tmp_path)
    assert prompts_of(file)[:-1] == expected[:-1]  # the last has tokens that these files do not list as special
    assert file.tokenizer.encode("a<|endoftext|>") == [*file.tokenizer.encode("a"), file.config.model.eos]
    assert file.tokenizer.decode(expected[0]) == PROMPTS[0]


def test_llama_folders_with_a_sentencepiece_model_alone_are_read(tmp_path):
    generators.llama(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    model = small_sentencepiece.train(model_type="bpe", byte_fallback=True, vocab_size=520)
    (tmp_path / "tokenizer.model").write_bytes(model)
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    file = load_folder(tmp_path)
    assert prompts_of(file) == [[library.bos_id(), *library.encode(text)] for text in PROMPTS]
    edit(tmp_path / "tokenizer_config.json", add_bos_token=False)
    assert prompts_of(load_folder(tmp_path)) == [library.encode(text) for text in PROMPTS]


def test_all_tokens_that_end_a_text_are_kept(folder):
    assert load_folder(folder).prompt_format.ends[0] == load_folder(folder).config.model.eos
    edit(folder / "generation_config.json", eos_token_id=[2, 7, 10**9])
    assert load_folder(folder).prompt_format.ends == (2, 7)
    (folder / "generation_config.json").unlink()
    edit(folder / "config.json", eos_token_id=[5, 6])
    assert load_folder(folder).prompt_format.ends == (5, 6)
    assert load_folder(folder).config.model.eos == 5


def test_chat_templates_are_read_from_wherever_they_are(folder):
    assert load_folder(folder).prompt_format.chat_template == ""
    edit(folder / "tokenizer_config.json", chat_template="{{ one }}")
    assert load_folder(folder).prompt_format.chat_template == "{{ one }}"
    named = [{"name": "tool_use", "template": "{{ tools }}"}, {"name": "default", "template": "{{ two }}"}]
    edit(folder / "tokenizer_config.json", chat_template=named, bos_token={"content": "<s>", "lstrip": False})
    layout = load_folder(folder).prompt_format
    assert layout.chat_template == "{{ two }}"
    assert layout.token_texts["bos_token"] == "<s>"
    (folder / "chat_template.jinja").write_text("{{ three }}")
    assert load_folder(folder).prompt_format.chat_template == "{{ three }}"


def test_one_model_file_has_all_of_it(folder, tmp_path_factory, capsys):
    edit(folder / "tokenizer_config.json", chat_template="{{ messages }}")
    whole, packed = (tmp_path_factory.mktemp("files") / f"{name}.safetensors" for name in ("whole", "packed"))
    run_here(capsys, "import", folder, "-o", whole)
    run_here(capsys, "pack", whole, "-o", packed, "--storage", "int8")
    file = modelfile.load(packed)
    assert file.prompt_format == load_folder(folder).prompt_format
    assert prompts_of(file) == peer_prompts(folder)


@pytest.mark.parametrize(
    "damage",
    [
        {"before": [999]}, {"ends": ["2"]}, {"ends": 2}, {"chat_template": None}, {"token_texts": {"eos_token": 3}},
        {"more": 1},
    ],
)  # fmt: skip
def test_a_damaged_format_of_prompts_is_refused(damage):
    whole = PromptFormat((1,), (2, 3), "{{ messages }}", {"eos_token": "</s>"})
    assert PromptFormat.from_json(whole.to_json(), 20) == whole
    with pytest.raises((ValueError, TypeError)):
        PromptFormat.from_json(json.dumps(json.loads(whole.to_json()) | damage), 20)


def test_damaged_merges_are_one_line(tmp_path):
    generators.gpt2(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "vocab.json").write_text('{"a": 0}')
    (tmp_path / "merges.txt").write_text("x y\n")
    with pytest.raises(ModelFileError, match=r"vocab\.json and merges\.txt cannot be read"):
        load_folder(tmp_path)


def test_a_tokeniser_of_another_toolkit_survives_a_model_file(folder):
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.encode_batch(PROMPTS) == tokenizer.encode_batch(PROMPTS)
