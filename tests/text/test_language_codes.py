"""Language codes are compared in one spelling, and a code finds the codes that fit it."""

import pytest

from sixfold.text.language_codes import base_language, matching_codes, normalise_code


@pytest.mark.parametrize(
    ("code", "normalised"),
    [
        ("EN", "en"),
        ("pt-br", "pt-BR"),
        ("pt_BR", "pt-BR"),
        ("sr_latn", "sr-Latn"),
        ("SR-LATN-RS", "sr-Latn-RS"),
        ("es-419", "es-419"),
        ("en_US.UTF-8", "en-US"),
        ("de_DE@euro", "de-DE"),
        ("zh", "zh"),
        ("zh_CN", "zh"),
        ("ZH-cn", "zh"),
        ("zh-Hans", "zh"),
        ("zh-hans-tw", "zh"),
        ("zh-SG", "zh"),
        ("cmn", "zh"),
        ("zh-TW", "zh-Hant"),
        ("zh_HK", "zh-Hant"),
        ("zh-hant-tw", "zh-Hant"),
        ("cmn-Hant", "zh-Hant"),
        ("zt", "zh-Hant"),
        ("pb", "pt-BR"),
        ("iw", "he"),
        ("in", "id"),
        ("AUTO", "auto"),
        (" toy ", "toy"),
        ("", ""),
        ("--", ""),
    ],
)
def test_a_code_has_one_spelling(code, normalised):
    assert normalise_code(code) == normalised
    assert normalise_code(normalised) == normalised


def test_the_base_language_has_no_script_and_region():
    assert [base_language(code) for code in ("pt-BR", "zh_TW", "ZH", "iw-IL", "")] == ["pt", "zh", "zh", "he", ""]


@pytest.mark.parametrize(
    ("code", "available", "matching"),
    [
        ("pt-br", ["pt", "pt-BR", "en"], ["pt-BR"]),
        ("pt-PT", ["pt", "pt-BR", "en"], ["pt"]),
        ("pt-PT", ["pt-BR", "en"], ["pt-BR"]),
        ("pt", ["pt-BR", "en"], ["pt-BR"]),
        ("en-US", ["en", "en-GB"], ["en"]),
        ("en-US", ["en-AU", "en-GB", "de"], ["en-AU", "en-GB"]),
        ("sr-Latn-RS", ["sr", "sr-Latn"], ["sr-Latn"]),
        ("zh-TW", ["zh", "en"], ["zh"]),
        ("zh-TW", ["zh", "zh-Hant"], ["zh-Hant"]),
        ("zh_CN", ["zh-Hant", "ZH-Hans"], ["ZH-Hans"]),
        ("EN", ["zh", "En"], ["En"]),
        ("de", ["zh", "en"], []),
        ("en", [], []),
        ("en", ["en", "en"], ["en"]),
    ],
)
def test_the_same_code_fits_before_one_without_its_region_and_that_before_one_of_the_language(
    code, available, matching
):
    assert matching_codes(code, available) == matching
