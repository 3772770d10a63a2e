"""Catalogues of gettext come back as msgfmt and polib want them; every message is translated once, and nothing else."""

import re
import shutil
import subprocess
from dataclasses import replace

import polib
import pytest
from made_documents import Turned, made

from sixfold.errors import DataError, RequestError
from sixfold.translation.documents.catalogues.accelerators import split_accelerator
from sixfold.translation.documents.steps import translate_document
from sixfold.translation.result import Notice, Translation

HEADER = (
    'msgid ""\nmsgstr ""\n"Language: {}\\n"\n"Content-Type: text/plain; charset={}\\n"\n'
    '"Content-Transfer-Encoding: 8bit\\n"\n"Plural-Forms: {}\\n"\n\n'
)
TEMPLATE = HEADER.format("", "CHARSET", "nplurals=INTEGER; plural=EXPRESSION;")


class Upper(Turned):
    """Writes texts in capitals, or as Chinese characters, and keeps placeholders; some translations have a warning."""

    def __init__(self, target="zh", doubtful=()):
        super().__init__()
        self.languages, self.doubtful = ("en", target), doubtful
        self.texts = []

    def translate(self, text, *_):
        self.texts.append(text)
        parts = re.split(r"(%\(?\w+\)?\w*|[\U000f0000-\U000fffff])", text)
        words = [part if index % 2 else self.word(part) for index, part in enumerate(parts)]
        warnings = tuple(Notice("number", "a number differs") for word in self.doubtful if word in text)
        return Translation(text, "".join(words), 0.0, self.languages, warnings=warnings)

    def word(self, part):
        return re.sub(r"\w+", "词语", part) if self.languages[1] == "zh" else part.upper()


def translated(text, translator=None):
    return translate_document(translator or Upper(), text.encode(), "po")[0].decode()


def check_with_msgfmt(text, tmp_path):
    if shutil.which("msgfmt") is None:
        return
    path = tmp_path / "made.po"
    path.write_text(text, encoding="utf-8")
    run = subprocess.run(["msgfmt", "-c", "-o", "/dev/null", path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr + text


def test_a_message_over_several_strings_is_one_text_and_lines_that_only_wrap_are_joined():
    text = (
        'msgid ""\n"The option "\n"is not\\n"\n"allowed here, because the file does not exist and cannot be\\n"\n'
        '"made.\\n"\n"\\n"\n"  * read\\n"\n"  * write\\n"\nmsgstr ""\n'
    )
    translator = Upper("de")
    output = translated(text, translator)
    assert translator.texts == [
        "The option is not allowed here, because the file does not exist and cannot be made.\n\n  * read\n  * write"
    ]
    (entry,) = polib.pofile(output)
    assert " ".join(entry.msgstr.split()) == " ".join(entry.msgid.upper().split())
    assert max(map(len, entry.msgstr.split("\n"))) <= 60
    assert entry.msgstr.endswith("\n\n  * READ\n  * WRITE\n")


@pytest.mark.parametrize("ends", [("\\n", "\\n"), ("", "\\n\\n"), ("\\n", ""), ("", "")])
def test_line_feeds_at_both_ends_stay(ends, tmp_path):
    output = translated(f'{TEMPLATE}msgid "{ends[0]}one two{ends[1]}"\nmsgstr ""\n', Upper("de"))
    assert f'"{ends[0]}ONE TWO{ends[1]}"' in output.replace('""\n', "").replace('"\n"', "")
    check_with_msgfmt(output, tmp_path)


@pytest.mark.parametrize("code", ["de", "de_AT.UTF-8", "pt_BR"])
def test_a_catalogue_in_a_third_language_gets_no_translation_into_another(code):
    text = HEADER.format(code, "UTF-8", "nplurals=2; plural=(n != 1);") + 'msgid "one"\nmsgstr "eins"\n\n'
    assert translated(text) == text
    untranslated = 'msgid "one two"\nmsgstr ""\n'
    with pytest.raises(RequestError, match=rf"^document:2: .* into Chinese \(zh\); got one into \w+ \({code}\)"):
        translated(text + untranslated)
    assert 'msgstr "ONE TWO"' in translated(text + untranslated, Upper(code[:2]))


@pytest.mark.parametrize("code", ["", "en", "en_US", "zh_SG", "zho", "LANGUAGE", "Chinese"])
def test_a_catalogue_that_names_one_of_both_languages_or_none_gets_translations(code):
    text = HEADER.format(code, "UTF-8", "nplurals=1; plural=0;") + 'msgid "one two"\nmsgstr ""\n'
    assert "词语" in translated(text)


@pytest.mark.parametrize("code", ["en", "en_GB", "eng"])
def test_translations_into_another_variety_of_the_source_are_not_cut_or_mixed_with_another_language(code):
    header = HEADER.format(code, "UTF-8", "nplurals=2; plural=(n != 1);")
    done = 'msgid "one color"\nmsgid_plural "%d colors"\nmsgstr[0] "one colour"\nmsgstr[1] "%d colours"\n\n'
    untranslated = 'msgid "one two"\nmsgstr ""\n\n'
    assert translated(header + done) == header + done
    with pytest.raises(RequestError, match=rf"^document:2: .* Chinese \(zh\); got one into English \({code}\)"):
        translated(header + done + untranslated)
    obsolete = "".join(f"#~ {line}\n" for line in done.splitlines())
    assert "词语" in translated(header + untranslated + obsolete)


@pytest.mark.parametrize(("code", "target"), [("zh_TW", "zh"), ("zh-HK", "zh"), ("zh_CN", "zh-Hant")])
def test_a_catalogue_in_other_characters_is_a_third_language(code, target):
    text = HEADER.format(code, "UTF-8", "") + 'msgid "one two"\nmsgstr ""\n'
    with pytest.raises(RequestError, match=rf"Chinese \({target}\); got one into Chinese \({code}\)") as error:
        translated(text, Upper(target))
    other = {"zh": "zh-Hant", "zh-Hant": "zh"}[target]
    assert error.value.hint == f"translate it into {other}"
    assert f"Language: {code}\\n" in translated(text, Upper(other))


PLURAL = '#, c-format\nmsgid "one file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'


@pytest.mark.parametrize(
    ("target", "forms", "count"),
    [
        ("zh", ["%d 词语"], 1),
        ("de", ["ONE FILE", "%d FILES"], 2),
        ("fr", ["%d FILES", "%d FILES"], 2),  # the first form is for 0 too
        ("ru", ["%d FILES"] * 3, 3),
        ("ar", ["%d FILES"] * 6, 6),
    ],
)
def test_plurals_have_as_many_forms_as_the_target_language(target, forms, count, tmp_path):
    output = translated(TEMPLATE + PLURAL, Upper(target))
    catalogue = polib.pofile(output)
    assert list(catalogue[0].msgstr_plural.values()) == forms
    assert catalogue.metadata["Plural-Forms"].startswith(f"nplurals={count};")
    assert catalogue.metadata["Language"] == target
    assert catalogue.metadata["Content-Type"].endswith("charset=UTF-8")
    check_with_msgfmt(output, tmp_path)


def test_a_header_for_the_target_language_keeps_its_own_rule():
    header = HEADER.format("zh_CN", "UTF-8", "nplurals=2; plural=(n > 1);")
    catalogue = polib.pofile(translated(header + PLURAL))
    assert catalogue.metadata["Language"] == "zh_CN"
    assert catalogue.metadata["Plural-Forms"] == "nplurals=2; plural=(n > 1);"
    assert list(catalogue[0].msgstr_plural.values()) == ["%d 词语", "%d 词语"]


def test_a_plural_in_a_catalogue_with_one_form_is_the_translation_of_the_plural():
    one_form = PLURAL.replace('msgstr[1] ""\n', "")
    assert polib.pofile(translated(one_form))[0].msgstr_plural == {0: "%d 词语"}


def test_everything_else_stays():
    kept = (
        '# by hand\n#. for you\n#: a.c:1 b.c:2\n#, fuzzy\nmsgctxt "menu"\nmsgid "open it"\nmsgstr "geraten"\n\n'
        'msgid "close it"\nmsgstr "zu"\n\n#~ msgid "old one"\n#~ msgstr ""\n'
    )
    assert translated(kept) == kept
    new = '# by hand\n#: a.c:1\n#, c-format\nmsgctxt "menu"\nmsgid "open it"\nmsgstr ""\n\n'
    assert translated(new + kept) == new.replace('msgstr ""', 'msgstr "词语 词语"') + kept


def test_translations_with_warnings_are_fuzzy():
    text = (
        '#: a.c:1\nmsgid "bad one"\nmsgstr ""\n\n#, c-format\nmsgid "bad two"\nmsgid_plural "bad %d"\n'
        'msgstr[0] ""\nmsgstr[1] ""\n\n#, fuzzy\nmsgid "bad three"\nmsgstr ""\n\n#| msgid "old"\nmsgctxt "a"\n'
        'msgid "bad four"\nmsgstr ""\n\nmsgid "good"\nmsgstr ""\n'
    )
    output = translated(text, Upper(doubtful=("bad",)))
    assert [entry.fuzzy for entry in polib.pofile(output)] == [True, True, True, True, False]
    assert "#, fuzzy, c-format\n" in output
    assert '#, fuzzy\n#| msgid "old"\nmsgctxt' in output
    assert output.count("fuzzy") == 4


@pytest.mark.parametrize(
    ("label", "translation", "expected"),
    [
        ("&File", "文件", "文件(&F)"),
        ("Save &As...", "另存为...", "另存为(&A)..."),
        ("E&xit", "退出", "退出(&X)"),
        ("&Name:", "名称：", "名称(&N)："),
        ("_Open", "打开", "打开(_O)"),
        ("&File", "Datei", "&Datei"),
        ("&Open", "Öffnen", "&Öffnen"),
        ("Cu_t", "Schnitt", "Schni_tt"),
    ],
)
def test_an_accelerator_goes_to_its_letter_or_stands_in_brackets(label, translation, expected):
    plain, place = split_accelerator(label, True)
    assert plain == label.replace("&", "").replace("_", "")
    assert place(translation) == expected


@pytest.mark.parametrize(
    "text", ["AT&T", "Q&A", "this & that", "&amp;", "&lt;b", "a_name", "x && y", "<a href='?a&b'>"]
)
def test_what_is_no_accelerator_stays_in_the_text(text):
    assert split_accelerator(text, False) == (text, str)


def test_directives_of_a_format_are_kept_even_where_they_look_like_words():
    output = translated('#, c-format\nmsgid "% d of %1$*2$d and %<PRIu64> at 5%% off: %(dir)sa.txt"\nmsgstr ""\n')
    for directive in ("% d", "%1$*2$d", "%<PRIu64>", "%%", "%(dir)s"):
        assert output.count(directive) == 2, directive


def test_directives_that_change_places_are_not_written():
    class Swapping(Upper):
        def translate(self, text, *_):
            atoms = re.findall("[\U000f0000-\U000fffff]", text)
            return Translation(text, " 词 ".join(atoms[::-1]) or text.upper(), 0.0, self.languages)

    text = '#, c-format\nmsgid "% d and % s"\nmsgstr ""\n'
    assert translated(text, Swapping()) == text.replace('msgstr ""', 'msgstr "% d AND % s"').replace(
        ", c", ", fuzzy, c"
    )


def test_a_percent_sign_that_is_no_directive_is_written_only_where_no_format_is_declared():
    class Percent(Upper):
        def translate(self, text, *_):
            return Translation(text, f"5% {text}", 0.0, self.languages)

    text = 'msgid "so it is"\nmsgstr ""\n'
    assert translated(text, Percent()).endswith('msgstr "5% so it is"\n')
    assert translated(f"#, python-format\n{text}", Percent()) == f"#, python-format\n{text}"


def test_a_tag_over_several_lines_stays_whole():
    output = translated('msgid "go <a b=\\"c\\"\\n"\n"  d=\\"e\\"> now"\nmsgstr ""\n', Upper("de"))
    assert polib.pofile(output)[0].msgstr == 'GO <a b="c"\n  d="e"> NOW'


def test_the_one_form_of_a_language_is_never_that_for_one_thing_without_its_number():
    class Failing(Upper):
        def translate(self, text, *_):
            translation = super().translate(text)
            return replace(translation, text="词" if "%d" in text else translation.text)

    text = TEMPLATE + 'msgid "one file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    assert polib.pofile(translated(text))[0].msgstr_plural == {0: "%d 词语"}
    assert polib.pofile(translated(text, Failing()))[0].msgstr_plural == {0: ""}
    assert polib.pofile(translated(text, Failing("ru")))[0].msgstr_plural == {0: "", 1: "", 2: ""}


def test_made_catalogues_pass_msgfmt(tmp_path):
    for number in range(15):
        check_with_msgfmt(translate_document(Upper("de"), made("po", number), "po")[0].decode(), tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('msgid "a\nmsgstr ""\n', ':1: expected " at the end of the string'),
        ('msgid "a"\nmsgid "b"\nmsgstr ""\n', ":2: expected a msgstr in the message before this line"),
        ('msgid "a"\nmsgtr ""\n', ":2: expected msgid, msgstr or a comment; got 'msgtr'"),
        ('"a"\n', ":1: expected msgid or msgstr before a string"),
        ('msgid "a" b\nmsgstr ""\n', ":1: expected a string in quotation marks; got 'b'"),
        ('msgstr "a"\n', ":1: expected a msgid before msgstr"),
        ('msgid "a"\nmsgstr ""\nmsgstr ""\n', ":3: expected one msgstr in a message; got another"),
        ("<html>", ":1: expected msgid, msgstr or a comment; got '<html>'"),
    ],
)
def test_a_malformed_catalogue_is_an_error_with_its_line(text, message):
    with pytest.raises(DataError, match=re.escape(message)):
        translated(text)
