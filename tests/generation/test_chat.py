"""Chat templates against `apply_chat_template` of transformers, which has an environment of its own."""

import builtins
from dataclasses import replace

import pytest
import small_generators as generators
import transformers

from sixfold.errors import RequestError
from sixfold.generation.chat import _compile, render_chat
from sixfold.generation.generator import Generator
from sixfold.generation.options import GenerateOptions
from sixfold.interop.huggingface import load_folder
from sixfold.text.prompt_format import PromptFormat

TEMPLATES = {
    "chatml": """{% for message in messages %}
  {% if loop.first and message['role'] != 'system' %}
{{ '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' }}
{%- endif %}
{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- endif %}""",
    "llama-3": """{{- bos_token }}
{%- if strftime_now is defined %}{% set today = strftime_now("%Y") %}{% else %}{% set today = "1970" %}{% endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{%- if tools is not none %}{{- raise_exception("no tools here") }}{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\nIt is " + today + ".\\n" + system_message + "<|eot_id|>" }}
{%- for message in messages %}
    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' }}
    {{- message['content'] | trim + '<|eot_id|>' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}""",
    "mistral": """{%- set state = namespace(system="", turns=0) %}
{%- for message in messages %}
    {%- if message.role == "system" and loop.first %}
        {%- set state.system = message.content + "\\n\\n" %}{% continue %}
    {%- endif %}
    {%- if (message.role == "user") != (state.turns % 2 == 0) %}
        {{- raise_exception("roles must alternate user/assistant/user/assistant/...") }}
    {%- endif %}
    {%- set state.turns = state.turns + 1 %}
{%- endfor %}
{{- bos_token }}
{%- for message in messages if message.role != "system" %}
    {%- if message.role == "user" %}
        {{- "[INST] " + (state.system if loop.last else "") + message.content + "[/INST]" }}
    {%- else %}
        {%- generation %}{{- " " + message.content + eos_token }}{%- endgeneration %}
    {%- endif %}
{%- endfor %}""",
    "filters": "{{ messages | tojson }} {{ messages | map(attribute='role') | join(',') | upper }}"
    "{{ {'é': '<'} | tojson(indent=1) }}"
    "{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
}  # fmt: skip
CONVERSATIONS = {
    "question": [{"role": "user", "content": " How are you? <b>&amp;</b> 机器 "}],
    "with system": [{"role": "system", "content": "Be brief. "}, {"role": "user", "content": "Hi\n"}],
    "turns": [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "{{ 1 }}"},
    ],
}  # fmt: skip
TOKEN_TEXTS = {"bos_token": "<s>", "eos_token": "</s>"}
CHAT = GenerateOptions(max_tokens=12)


def layout(template):
    return PromptFormat((), (), template, TOKEN_TEXTS)


@pytest.fixture(scope="module")
def peer():
    return transformers.PreTrainedTokenizerFast(tokenizer_object=generators.byte_level(), **TOKEN_TEXTS)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_prompts_are_those_of_transformers(peer, template, conversation):
    source, messages = TEMPLATES[template], CONVERSATIONS[conversation]
    expected = peer.apply_chat_template(messages, chat_template=source, tokenize=False, add_generation_prompt=True)
    assert render_chat(layout(source), messages) == expected
    assert len(expected) > 20


def test_a_conversation_that_a_template_refuses_is_one_line():
    twice = [{"role": "user", "content": "a"}] * 2
    with pytest.raises(RequestError, match="refuses the conversation: roles must alternate"):
        render_chat(layout(TEMPLATES["mistral"]), twice)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ().__class__.__bases__[0].__subclasses__() }}", "{% set _ = messages.append(1) %}",
        "{{ messages[0].clear() }}", "{{ range(10**9) | list }}", "{{ cycler.__init__.__globals__.os.getcwd() }}",
        "{{ raise_exception.__globals__.os }}", "{{ 1 / 0 }}", "{% include '/etc/passwd' %}",
    ],
)  # fmt: skip
def test_a_template_can_reach_nothing_but_its_messages(template):
    with pytest.raises(RequestError, match="refuses the conversation"):
        render_chat(layout(template), CONVERSATIONS["question"])


def test_a_template_that_is_no_jinja_is_one_line():
    with pytest.raises(RequestError, match="is not valid Jinja"):
        render_chat(layout("{% for %}"), CONVERSATIONS["question"])


@pytest.mark.parametrize("messages", [[], ["hi"], [{"role": "user"}], [{"role": "user", "content": None}]])
def test_messages_without_a_role_or_a_content_are_refused(messages):
    with pytest.raises(RequestError, match="chat: expected"):
        render_chat(layout(TEMPLATES["chatml"]), messages)


def test_a_model_answers_in_its_format_and_ends_where_its_template_does(tmp_path):
    model, _ = generators.gpt2(tmp_path)
    (tmp_path / "chat_template.jinja").write_text(TEMPLATES["chatml"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    file, messages = load_folder(tmp_path), CONVERSATIONS["question"]
    expected = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    with Generator(file, "cpu") as generator:
        assert generator.encode(messages) == expected["input_ids"][0].tolist()
        assert generator.tokenizer.rust.token_to_id("<|im_start|>") in generator.encode(messages)
        ids = model.generate(**expected, max_new_tokens=12, do_sample=False, pad_token_id=0)[0].tolist()
        (answer,) = generator.generate([messages], CHAT)[0]
        assert [token.id for token in answer.tokens] == ids[len(generator.encode(messages)) :]
        chunks = generator.stream(messages, CHAT)
        assert "".join(chunk.text for chunk in chunks) == answer.text
    end = answer.tokens[4].id
    with Generator(replace(file, prompt_format=replace(file.prompt_format, ends=(0, end))), "cpu") as generator:
        (answer,) = generator.generate([messages], CHAT)[0]
        assert answer.finish == "stop"
        assert len(answer.tokens) <= 4


def test_without_jinja2_the_error_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("jinja2"):
            raise ImportError(name)
        return real(name, *rest)

    _compile.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(RequestError, match="needs jinja2") as error:
        render_chat(layout(TEMPLATES["chatml"]), CONVERSATIONS["question"])
    assert error.value.hint == "pip install 'sixfold[chat]'"
