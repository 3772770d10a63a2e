"""Placeholders, tags, code, addresses and the like reach a translation exactly once, wherever the model puts them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixfold.text.tokenizer import FIRST_SPAN
from sixfold.translation.protection import (
    Edit,
    apply_edits,
    has_same_parts,
    model_text,
    move_span,
    protected_spans,
    remove_protected,
)

SPANS = 8


def parts(text):
    return [text[slice(*span)] for span in protected_spans(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{x} {{ x }} {{count}} ${x} #{x} %{x} {0} {}", "{x}|{{ x }}|{{count}}|${x}|#{x}|%{x}|{0}|{}"),
        ("%s %d %5.2f %(name)s %1$s %-10s %@ %%", "%s|%d|%5.2f|%(name)s|%1$s|%-10s|%@|%%"),
        ("%1 of %2, %n left", "%1|%2|%n"),
        ("{n, number, integer} at {t, time, ::jmm}", "{n, number, integer}|{t, time, ::jmm}"),
        ("{% if x %}a{% endif %}<%= y %>", "{% if x %}|{% endif %}|<%= y %>"),
        ("a <b>c</b> <x id='1'/> <!-- d --> &nbsp;e", "<b>|</b>|<x id='1'/>|<!-- d -->|&nbsp;"),
        ("Run `git commit` and <code>a b</code>", "`git commit`|<code>a b</code>"),
        ("Use --comment, -v or --level=3.", "--comment|-v|--level=3"),
        ("see https://a.b/c?d=e#f. Or www.x.org/y, mail a.b@c.org", "https://a.b/c?d=e#f|www.x.org/y|a.b@c.org"),
        ("in ~/.bashrc, /etc/hosts, ./a.sh, C:\\a\\b.txt", "~/.bashrc|/etc/hosts|./a.sh|C:\\a\\b.txt"),
        ("<i>https://a.b/c</i>", "<i>|https://a.b/c|</i>"),
        ("edit src/main.c and setup.py", "src/main.c|setup.py"),
        ("ffi_status, getElementById, os.path.join(), std::set", "ffi_status|getElementById|os.path.join()|std::set"),
        ("version 3.11.2 or v2.0", "3.11.2|v2.0"),
        ("$$a$$ and $x_1$ and \\(y\\)", "$$a$$|$x_1$|\\(y\\)"),
        ("well 👍🏽 done 👩‍👩‍👧 ❤️", "👍🏽|👩‍👩‍👧|❤️"),
        ("# items", "#"),
        ("用{name}打开~/a.txt里的`x`", "{name}|~/a.txt|`x`"),
        ("run emacs -nw, kill -HUP", "-nw|-HUP"),
        ("用法：-i 文件，“-o”和用-v运行", "-i|-o|-v"),
        ("pass the -lelf and -ldwarf flags, '-us' or \"-name\"", "-lelf|-ldwarf|-us|-name"),
        ("运行选项\"-name\"，L\"-m\"", "-name|-m"),
        ("ssh-keygen -lf, apt-get and -y", "-lf|-y"),
        ("libc.so, *.orig.tar.gz, lib64/ld.so, ./boot/a.cfg", "libc.so|*.orig.tar.gz|lib64/ld.so|./boot/a.cfg"),
        ("It is in ../data. Or ./..., ../../a.c, ~/.b.", "../data|./...|../../a.c|~/.b"),
        ("theming./boot/grub/a.cfg is new", "theming./boot/grub/a.cfg"),
        ("kubernetes.io/app.name, a.b/c.d", "kubernetes.io/app.name|a.b/c.d"),
    ],
)  # fmt: skip
def test_what_must_be_copied_is_found(text, expected):
    assert parts(text) == expected.split("|")


@pytest.mark.parametrize(
    "text",
    [
        "He has 100% of it, 50 % more.", "It costs $5 and $10.", "5 < 6 and 7 > 3", "and/or, either/or", "well-known",
        "C# and F# are languages", "The U.S. and e.g. others", "12.5 and 1,024", "R&D; AT&T", "-Yes", "iPhone", "a - b",
        "price: $5 to $6", "at 5 p.m. on 3.5.", "{", "}", "%", "他说：50%的人。", "Q&A",
        "Western-style and -quality hotels", "oil-rich, -dependent and -exporting states", "a 'top 10'-type list",
        '"Perry"-class frigates', 'the (or "Armed"-SS) ones', "Jack-o'-lantern", '"Is it?"-like', '"Plan"-B',
        "He started...so did I.", "12 hab./sq.mi or people/sq.km", "hard to swallow -but cheap", '"Société"-type',
    ],
)  # fmt: skip
def test_prose_is_left_alone(text):
    assert [part for part in parts(text) if part not in ("iPhone",)] == []


def test_a_model_reads_span_tokens_and_pairs_of_tags_have_one_number():
    read = model_text("Open {file} in <b>the %s</b> now", SPANS)
    assert read.text == "Open \ue000 in \ue009the \ue002\ue011 now"
    assert read.parts == ("{file}", "<b>", "%s", "</b>")
    assert apply_edits(read.text, read.source_edits()) == "Open {file} in <b>the %s</b> now"
    translation = "现在 \ue009\ue002\ue011 打开 \ue000"
    assert apply_edits(translation, read.target_edits(translation)) == "现在 <b>%s</b> 打开 {file}"


@pytest.mark.parametrize(
    "translation",
    [
        "打开 \ue009\ue011",  # two are lost
        "\ue000\ue000\ue009\ue002\ue011",  # one is twice
        "\ue000\ue009\ue002\ue011\ue001",  # one is invented
        "\ue000\ue011\ue002\ue009",  # the pair is turned round
    ],
)
def test_a_translation_without_exactly_the_parts_is_refused(translation):
    assert model_text("Open {file} in <b>the %s</b> now", SPANS).target_edits(translation) is None


def test_pairs_that_overlap_are_refused():
    read = model_text("<b>a <i>b</i></b>", SPANS)
    assert read.target_edits("\ue008甲\ue009乙\ue011\ue010") is not None
    assert read.target_edits("\ue008甲\ue009乙\ue010\ue011") is None
    assert read.target_edits("\ue009乙\ue011\ue008甲\ue010") is None  # the inner pair has left the outer one


def test_placeholders_that_go_by_their_order_stay_in_it():
    by_order = model_text("%s has %d files", SPANS)
    assert by_order.target_edits("\ue000 有 \ue001 个文件") is not None
    assert by_order.target_edits("\ue001 个文件是 \ue000 的") is None
    by_name = model_text("%(who)s has %(count)d files", SPANS)
    assert by_name.target_edits("\ue001 个文件是 \ue000 的") is not None
    assert not has_same_parts("%s has %d files", "%d 个文件是 %s 的")
    assert has_same_parts("%2$s has %1$d files", "%1$d 个文件是 %2$s 的")


def test_more_parts_than_numbers_share_tokens_and_come_back_in_their_order():
    text = " ".join(f"{{v{number}}}" for number in range(20))
    read = model_text(text, SPANS)
    assert apply_edits(read.text, read.target_edits(read.text)) == text


@pytest.mark.parametrize("invented", ["{0}", "%s", "<b>", "https://a.b/c", "\ue123", "{", "}", "\x0c", "\u2028", "\r"])
def test_a_part_that_the_source_lacks_is_refused(invented):
    for spans in (SPANS, 0):
        read = model_text("打开{name}", spans)
        assert read.target_edits(f"Open {read.tokens or '{name}'} now") is not None
        assert read.target_edits(f"Open {read.tokens or '{name}'} {invented}") is None
    assert not has_same_parts("打开", f"open {invented}")


@pytest.mark.parametrize(
    ("source", "written", "expected"),
    [
        ("看{n}个", "see0files", "see {n} files"),
        ("在https://a.b/c里", "in0there, 好", "in https://a.b/c there, 好"),
        ("{n}MB files", "0MB文件", "{n}MB文件"),  # as in the source
        ("{n} items", "有0个", "有{n}个"),
        ("<x/>好", "a0good", "a<x/>good"),
        ("👍好", "a0good", "a👍good"),
    ],
)
def test_no_word_comes_to_touch_a_part(source, written, expected):
    read = model_text(source, SPANS)
    written = written.replace("0", read.tokens)
    assert apply_edits(written, read.target_edits(written)) == expected


def test_a_model_without_span_tokens_reads_the_parts_themselves():
    read = model_text("Open {file} now", 0)
    assert read.text == "Open {file} now"
    assert read.target_edits("现在打开 {file}") == []
    assert read.target_edits("现在打开") is None


HOSTILE = [
    "{x}",
    "{{x}}",
    "%s",
    "%(n)d",
    "<b>",
    "</b>",
    "<br/>",
    "`a`",
    "a_b",
    "--c",
    "😀",
    "$x_1$",
    "http://a.b/c",
    "word",
    "水",
    " ",
    "\ue003",
]


@given(st.lists(st.sampled_from(HOSTILE), max_size=20), st.randoms())
def test_parts_in_any_order_come_back_exactly_or_the_translation_is_refused(pieces, generator):
    text = "".join(pieces)
    read = model_text(text, SPANS)
    assert apply_edits(read.text, read.source_edits()) == text
    assert read.mask_target(text).count("{x}") == 0
    characters = list(read.text)
    generator.shuffle(characters)
    translation = "".join(characters)
    edits = read.target_edits(translation)
    if edits is not None:
        restored = apply_edits(translation, edits)
        assert all(restored.count(part) >= read.parts.count(part) for part in read.parts)
        assert not re.search(f"[{chr(FIRST_SPAN)}-{chr(FIRST_SPAN + 3 * SPANS - 1)}]", restored.replace("\ue003", ""))


def test_spans_move_with_the_edits_before_them():
    edits = [Edit((2, 3), "long"), Edit((5, 5), "in")]
    assert move_span((0, 2), edits) == (0, 2)
    assert move_span((2, 3), edits) == (2, 6)
    assert move_span((3, 5), edits) == (6, 8)
    assert move_span((5, 6), edits) == (10, 11)


def test_what_is_copied_is_no_prose():
    assert remove_protected("see {x}").split() == ["see"]
