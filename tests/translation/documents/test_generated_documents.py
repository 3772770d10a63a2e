"""Documents of every format, made at random, keep their structure and placeholders whatever a translator does."""

import os
import sys
from pathlib import Path
from unittest.mock import patch

import made_documents
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from made_documents import ATOMS, MAKERS, Turned, made, structure

from sixfold import Translator
from sixfold.translation.documents.steps import translate_document

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))  # at the end: its modules hide nothing

from documents import faults_of, outline_of
from hostile_translator import LawlessTranslator, hostile_translator

# `make documents` takes a hundred of each format through the model in the package.
SHIPPED_DOCUMENTS = int(os.environ.get("SIXFOLD_DOCUMENTS", "2"))
HAVE_TRANSLATIONS = ("po", "xliff")  # many of these are complete, and stay as they are
HOSTILE_ATOMS = (
    "{0}", "{", "}", "%", "%%", "%1$s", "${x}", "{{#if a}}", "{n, plural, one {# x} other {# y}}", "{x, number}",
    "--force", "a_b", "a.b()", "/usr/bin/x", "$x_1$", "\\n", "v1.2", "@x", ":so_so:", "😀", "`x`", "<x/>", "<b>so</b>",
    "]]>", "-->", "''", "\\", "&amp;", "#", "|", "~", "_a_", "\ue000", "\U000f0000",
)  # fmt: skip


def hostile_document(form, seed):
    """Return a document whose sentences have placeholders of all kinds, and characters that are markup somewhere."""
    with patch.object(made_documents, "ATOMS", ATOMS + HOSTILE_ATOMS):
        return made(form, seed)


def translate_checked(form, data, translator, source=None, target=None):
    """Translate a document, and compare the result with it by two readers that are not those of Sixfold."""
    output, _ = translate_document(translator, data, form, source, target)
    assert structure(form, output) == structure(form, data), (data, output)
    assert faults_of(form, data, output) == [], (data, output)
    return output


@pytest.mark.parametrize("form", MAKERS)
def test_words_in_reverse_order_keep_their_markup(form):
    documents = [made(form, number) for number in range(40)]
    outputs = [translate_checked(form, data, Turned()) for data in documents]
    assert outputs != documents


@pytest.fixture(scope="module")
def hostile():
    with hostile_translator() as translator:
        yield translator


def check_hostile(form, seed, is_lawless, hostile):
    data = hostile_document(form, seed)
    assume(outline_of(form, data) is not None)  # "]]>" must not be in XML
    for direction in hostile._directions.values():
        direction.engine.seed = seed
    translate_checked(form, data, LawlessTranslator(seed=seed) if is_lawless else hostile, "en", "zh")


# A smaller seed makes no smaller document, so nothing is shrunk.
FEW = settings(max_examples=100, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
MANY = settings(FEW, max_examples=10_000)
SEEDS = st.integers(0, 2**32)


@pytest.mark.parametrize("form", MAKERS)
@given(seed=SEEDS, is_lawless=st.booleans())
@FEW
def test_dropped_doubled_and_moved_spans_and_markup_out_of_nothing_damage_no_document(form, seed, is_lawless, hostile):
    check_hostile(form, seed, is_lawless, hostile)


@pytest.mark.slow
@pytest.mark.parametrize("form", MAKERS)
@given(seed=SEEDS, is_lawless=st.booleans())
@MANY
def test_a_hostile_decoder_damages_none_of_ten_thousand_documents(form, seed, is_lawless, hostile):
    check_hostile(form, seed, is_lawless, hostile)


@pytest.fixture(scope="module")
def shipped():
    with Translator(device="cpu") as translator:
        yield translator


@pytest.mark.parametrize("form", MAKERS)
def test_the_model_in_the_package_damages_no_document(shipped, form):
    documents = [made(form, number) for number in range(SHIPPED_DOCUMENTS)]
    outputs = [translate_checked(form, data, shipped, "en", "zh") for data in documents]
    assert outputs != documents or form in HAVE_TRANSLATIONS
