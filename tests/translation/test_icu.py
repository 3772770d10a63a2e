"""Messages of ICU: their texts are translated, and everything else of them stays."""

import pytest

from sixfold.translation.icu import message_texts


def texts(message):
    spans = message_texts(message)
    return spans and [message[slice(*span)] for span in spans]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("{n, plural, one {# cat} other {# cats}} here", ["# cat", "# cats", " here"]),
        ("{n,plural,=0{none}one{one}other{#}}", ["none", "one", "#"]),
        ("{n, plural, offset:1 other {you and # more}}", ["you and # more"]),
        ("{g, select, male {He left {name}} other {They left}}.", ["He left {name}", "They left", "."]),
        ("Hi, {n, selectordinal, one {#st} other {#th}} {x}", ["Hi, ", "#st", "#th", " {x}"]),
        ("{a, select, b {{n, plural, other {c {d} e}}} other {f}}", ["c {d} e", "f"]),
        ("{n, plural, other {it''s '{'so'}' isn't it}}", ["it''s '{'so'}' isn't it"]),
    ],
)
def test_the_texts_of_a_message_are_found(message, expected):
    assert texts(message) == expected


@pytest.mark.parametrize(
    "text",
    [
        "no message", "{name}", "{n, number}", "{n, plural, one {a}", "{n, plural, one}", "{n, plural, }",
        "}{n, plural, other {a}}",
        "{n, plural, one {a'} other {b}}", "it's {n, plural, one {a '# b} other {c}}",
        "{n, plural, other {a} b}", "{n, plural, other {a}} }", "{n, select, x {a} {b}}",
    ],
)  # fmt: skip
def test_what_is_no_message_is_an_ordinary_text(text):
    assert message_texts(text) is None


def test_arguments_too_deep_inside_each_other_are_no_message():
    assert message_texts("{n, select, other {" * 9 + "a" + "}}" * 9) is not None
    assert message_texts("{n, select, other {" * 2_000 + "a" + "}}" * 2_000) is None


def test_the_branches_of_a_message_are_translated_and_its_arguments_stay(translator):
    message = "{n, plural, one {我爱猫} other {# 我爱狗。}} {name}我看书"
    translation = translator.translate(message, "zh", "en")
    assert translation.text == "{n, plural, one {I love cats} other {# I love dogs.}} {name} I watch books"
    assert [message[slice(*sentence.source)] for sentence in translation.sentences] == [
        "我爱猫",
        "# 我爱狗。",
        "{name}我看书",
    ]
