"""Manual pages come back with their macros, fonts and examples, and groff has no more to say about them."""

import re
import shutil
import subprocess

import pytest
from made_documents import Turned, made

from sixfold.errors import DataError
from sixfold.translation.documents import seams
from sixfold.translation.documents.markup import man_structure
from sixfold.translation.documents.markup.man_fonts import write_runs
from sixfold.translation.documents.steps import translate_document

HEAD = ".SH NAME\nso, it \\- one two\n.SH SYNOPSIS\n.B so\n[so it]\n.SH DESCRIPTION\n"


MACRO = ".ad l\n"  # every page has a macro


def translated(text):
    return translate_document(Turned(), text.encode(), "man")[0].decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD, ".SH NAME\nso, it \\- TWO ONE\n.SH SYNOPSIS\n.B so\n[so it]\n.SH DESCRIPTION\n"),
        (".PP\none\ntwo three\n.PP\nfour", ".PP\nTHREE TWO ONE\n.PP\nFOUR"),
        ("one\n.B \\-x\ntwo", "TWO\n.B \\-x\nONE"),
        ("one\n.BR so (1),\n.I it\ntwo three", "THREE TWO\n.I it\n.BR so (1),\nONE"),
        ("one \\fBtwo three\\fR four", "FOUR \\fBTHREE TWO\\fR ONE"),
        ("one \\fBso\\fP two \\fI\\-\\-it\\fR", "\\fI\\-\\-it\\fR TWO \\fBso\\fP ONE"),
        ('.SH "ONE TWO"\nthree', '.SH "TWO ONE"\nTHREE'),
        (".SS one two\nthree", ".SS TWO ONE\nTHREE"),
        (".TP\n.B \\-a\none two", ".TP\n.B \\-a\nTWO ONE"),
        (".TP\none two\nthree four", ".TP\nTWO ONE\nFOUR THREE"),
        (".TP\n\\fBso\\fR \\fIit\\fR\none two", ".TP\n\\fBso\\fR \\fIit\\fR\nTWO ONE"),
        ('.IP "one two" 4\nthree', '.IP "TWO ONE" 4\nTHREE'),
        (".IP so 4\nthree", ".IP so 4\nTHREE"),
        (".nf\nso it\n.fi\none two", ".nf\nso it\n.fi\nTWO ONE"),
        (".EX\nso it\n.EE\none two", ".EX\nso it\n.EE\nTWO ONE"),
        (".TS\nso it\n.TE\none two", ".TS\nso it\n.TE\nTWO ONE"),
        (".de XX\nso it\n..\none two", ".de XX\nso it\n..\nTWO ONE"),
        (".ie n \\{\\\nso it\n.\\}\none two", ".ie n \\{\\\nso it\n.\\}\nTWO ONE"),
        ('.TH SO 1 "so it"\n.\\" so it\n.so man1/so.1', '.TH SO 1 "so it"\n.\\" so it\n.so man1/so.1'),
        ("one\n\ntwo three\n  four five", "ONE\n\nTHREE TWO\n  FIVE FOUR"),
        ("one \\(lqtwo\\(rq a\\\\b", "A\\eB \\(lqTWO\\(rq ONE"),
        ("say .never", "\\&.NEVER SAY"),
        ("see 'so", "\\&'SO SEE"),
        (
            ".Sh NAME\n.Nm so\n.Nd one two\n.Sh DESCRIPTION\none\n.Nm\ntwo",
            ".Sh NAME\n.Nm so\n.Nd TWO ONE\n.Sh DESCRIPTION\nTWO\n.Nm\nONE",
        ),
        (".Bd -literal\nso it\n.Ed\none two\n.Bl -tag\n.It Fl so\nthree four\n.El", None),
        (".Bd -filled\none two\n.Ed", ".Bd -filled\nTWO ONE\n.Ed"),
        ('.Sh SYNOPSIS\n.Nm so\n.SH "NAME"\nso \\- one two', '.Sh SYNOPSIS\n.Nm so\n.SH "NAME"\nso \\- TWO ONE'),
        (".CS\nso it\n.CE\none two", ".CS\nso it\n.CE\nTWO ONE"),
        ("one \\fBtwo three\\fI four five\\fR", "\\fIFIVE FOUR\\fR \\fBTHREE TWO\\fR ONE"),
        ("one \\-DNGk two", "TWO \\-DNGk ONE"),
    ],
)
def test_running_text_is_translated_and_macros_stay(text, expected):
    if expected is None:
        expected = text.replace("one two", "TWO ONE").replace("three four", "FOUR THREE")
    assert translated(f"{MACRO}{text}") == f"{MACRO}{expected}"


def test_fonts_may_be_ended_by_another_escape():
    text = f"{MACRO}\\fBone\\fP two \\fIthree\\fR"
    assert man_structure.structure(text) == man_structure.structure(text.replace("\\fP", "\\f[]"))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("\\fI|some |\\fBname\\fP| words here|\\fP", "some \\fBname\\fP\\fI words here\\fP"),
        ("\\fI|some words|.B so\n|it|\\fP", "\\fIsome words\\fP\n\ufdd1.B so\nit"),
        ("\\fI|some |\\fB|it|\\fR", "\\fIsome \\fR\\fBit\\fR"),
        ("-|\\fB\\-\\-so\\fP", "- \\fB\\-\\-so\\fP"),
    ],
)
def test_a_name_in_its_own_font_does_not_stand_inside_another_font(written, expected):
    seam = seams.mark_edges(str)("").strip()[:1]
    parts = written.split("|")
    with_seams = seam.join(parts) if parts[0].startswith("\\f") else seam + seam.join(parts)
    assert write_runs(with_seams) == expected


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("one\n.B so\ntwo", "one .B so\ntwo"),
        ("one", ".one"),
        ("one", "'one"),
        ("one \\fBtwo\\fR", "one two"),
        (".nf\none\n.fi", ".nf\ntwo\n.fi"),
        ("one\n.PP\ntwo", "one\ntwo"),
        (".B one", ".B two"),
        ('.SH "one"', ".SH one"),
        ('.SH "one"', '.SH "one""two"'),
        ("one\n\ntwo", "one\ntwo"),
        ("one", " one"),
        ("one", "one \\x"),
        (".TH a", ".TH b"),
        (".SH NAME", ".SH SO"),
        ("\\fBone\\fP \\fItwo\\fP", "\\fI\\fBone\\fP two\\fP"),  # ends in bold
        ("\\fBone\\fP \\fItwo\\fP", "\\fBone\\fP two"),
    ],
)
def test_the_structure_tells_a_page_from_a_damaged_one(text, broken):
    assert man_structure.structure(f"{MACRO}{text}") != man_structure.structure(f"{MACRO}{broken}")


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_groff_has_no_more_warnings_about_a_translation():
    pages = [made("man", number).decode() for number in range(40)]
    before, after = (warnings("\n".join(pages)), warnings("\n".join(map(translated, pages))))
    assert after <= before


def warnings(page):
    """Return the warnings of groff but for those about the breaking of lines."""
    command = ["groff", "-ww", "-man", "-t", "-Kutf8", "-Tutf8", "-z"]
    output = subprocess.run(command, input=page, capture_output=True, text=True, check=False, timeout=60).stderr
    return {
        re.sub(r"^.*?:\d+: ", "", line) for line in output.splitlines() if "break" not in line and "adjust" not in line
    }


def test_a_file_that_only_ends_like_a_man_page_is_refused():
    with pytest.raises(DataError, match=r"syslog.1: expected a man page; no line has a macro"):
        translate_document(Turned(), b"Nov 19 host sshd: hello\nNov 20 host sshd: so\n", "man", name="syslog.1")


def test_the_name_of_a_chinese_section_may_become_an_english_one():
    page = ".TH A 1\n.SH {}\na \\- b\n"
    assert man_structure.structure(page.format("名 称")) == man_structure.structure(page.format("name"))
    assert man_structure.structure(page.format("NAME")) != man_structure.structure(page.format("name"))
