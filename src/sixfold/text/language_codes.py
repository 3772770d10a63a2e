"""Language codes: one spelling for each, and which of several codes fits another."""

from __future__ import annotations

import re
from collections.abc import Iterable

_REPLACED = {"cmn": "zh", "in": "id", "iw": "he", "ji": "yi", "pb": "pt-BR", "zt": "zh-Hant"}
_TRADITIONAL_REGIONS = ("TW", "HK", "MO")  # where Chinese is written in traditional characters


def normalise_code(code: str) -> str:
    """Return a language code in one spelling, as BCP 47 recommends it; a code of any other form keeps its letters.

    | code | normalised | rule |
    | --- | --- | --- |
    | `EN`, `pt-br`, `sr_latn` | `en`, `pt-BR`, `sr-Latn` | language in small letters, Script, REGION |
    | `en_US.UTF-8`, `de_DE@euro` | `en-US`, `de-DE` | what follows in a locale is dropped |
    | `zh_CN`, `ZH-cn`, `zh-Hans`, `zh-Hans-SG`, `cmn` | `zh` | simplified Chinese is zh |
    | `zh-TW`, `zh-HK`, `zh-hant-tw`, `zt` | `zh-Hant` | traditional Chinese is zh-Hant |
    | `iw`, `in`, `pb` | `he`, `id`, `pt-BR` | old codes, and those of LibreTranslate |
    | `AUTO`, ` toy `, `` | `auto`, `toy`, `` | no code of a language: small letters |
    """
    language, *others = re.split("[-_]", re.split("[.@]", code.strip())[0])
    language, *more = _REPLACED.get(language.lower(), language.lower()).split("-")
    tags = [tag.title() if len(tag) == 4 else tag.upper() if len(tag) <= 3 else tag for tag in (*more, *others) if tag]
    if language != "zh":
        return "-".join([language, *tags])
    is_traditional = "Hant" in tags or ("Hans" not in tags and not set(_TRADITIONAL_REGIONS).isdisjoint(tags))
    return "zh-Hant" if is_traditional else "zh"


def base_language(code: str) -> str:
    """Return the language of a code without its script and region: pt for pt-BR, zh for zh-Hant."""
    return normalise_code(code).split("-")[0]


def matching_codes(code: str, available: Iterable[str]) -> list[str]:
    """Return those of the available codes that fit a code best, spelt as they are in `available`; [] if none does.

    These are, in this order, and all spellings are normalised before they are compared:
    1. the same code;
    2. the code without its region: en-US fits en, sr-Latn-RS fits sr-Latn;
    3. codes that differ by their regions: pt fits pt-BR, en-US fits en-GB;
    4. all codes of the same language: zh-Hant fits zh, which is then converted.
    """
    codes = list(dict.fromkeys(available))
    rules = (
        (normalise_code, normalise_code),
        (_without_region, normalise_code),
        (_without_region, _without_region),
        (base_language, base_language),
    )
    for simplify, simplify_available in rules:
        if matching := [each for each in codes if simplify_available(each) == simplify(code)]:
            return matching
    return []


def _without_region(code: str) -> str:
    language, *others = normalise_code(code).split("-")
    return "-".join([language, *(tag for tag in others if len(tag) == 4)])
