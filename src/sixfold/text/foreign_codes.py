"""Language codes of other toolkits, such as eng_Latn of NLLB and en_XX of mBART, as the codes of this project."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sixfold.text.language_codes import normalise_code

# ISO 639-3 and the two-letter codes of ISO 639-1. Of a macrolanguage, the code that NLLB uses for its standard form.
_CODES = (
    "afr:af aka:ak amh:am arb:ar ara:ar asm:as azj:az aze:az bak:ba bam:bm bel:be ben:bn bod:bo bos:bs bre:br bul:bg "
    "cat:ca ces:cs cym:cy dan:da deu:de dzo:dz ell:el eng:en epo:eo est:et eus:eu ewe:ee fao:fo fas:fa pes:fa fij:fj "
    "fin:fi fra:fr fry:fy ful:ff gla:gd gle:ga glg:gl grn:gn guj:gu hat:ht hau:ha heb:he hin:hi hrv:hr hun:hu hye:hy "
    "ibo:ig ind:id isl:is ita:it jav:jv jpn:ja kan:kn kat:ka kaz:kk khm:km kik:ki kin:rw kir:ky kmr:ku kon:kg kor:ko "
    "lao:lo lim:li lin:ln lit:lt ltz:lb lug:lg lvs:lv lav:lv mal:ml mar:mr mkd:mk plt:mg mlg:mg mlt:mt khk:mn mon:mn "
    "mri:mi zsm:ms msa:ms mya:my nld:nl nno:nn nob:nb nor:no npi:ne nep:ne nya:ny oci:oc ory:or ori:or pan:pa pol:pl "
    "por:pt pbt:ps pus:ps ron:ro run:rn rus:ru sag:sg san:sa sin:si slk:sk slv:sl smo:sm sna:sn snd:sd som:so sot:st "
    "spa:es als:sq sqi:sq srd:sc srp:sr ssw:ss sun:su swe:sv swh:sw swa:sw tam:ta tat:tt tel:te tgk:tg tgl:tl tha:th "
    "tir:ti tsn:tn tso:ts tuk:tk tur:tr twi:tw uig:ug ukr:uk urd:ur uzn:uz uzb:uz vie:vi wol:wo xho:xh ydd:yi yid:yi "
    "yor:yo zho:zh cmn:zh zul:zu"
)
TWO_LETTERS = dict(pair.split(":") for pair in _CODES.split())

LANGUAGE_TOKEN = re.compile(r"__([a-z]{2,3})__|([a-z]{3}_[A-Z][a-z]{3})|([a-z]{2,3}_[A-Z]{2})|>>([\w-]+)<<")


def code_of(name: str) -> str:
    """Return the code of a language by its name in another toolkit: zho_Hans is zh, en_XX is en, pt_br is pt-BR."""
    language, *parts = name.replace("-", "_").split("_")
    language = TWO_LETTERS.get(language, language)
    # mBART names a region and NLLB a script for every language, and only those of Chinese are needed.
    is_needed = language == "zh" or not re.fullmatch("[A-Z]{2}|[A-Z][a-z]{3}", parts[0] if parts else "")
    kept = parts if is_needed else []
    return normalise_code("_".join([language, *kept]))


def language_tokens(tokens: Iterable[str]) -> dict[str, str]:
    """Return the tokens that name languages, by code: {"en": "__en__"} of M2M100, {"en": "eng_Latn"} of NLLB.

    Of two names with the same code the first has it, and the other keeps its own name.
    """
    found: dict[str, str] = {}
    for token in tokens:
        match = LANGUAGE_TOKEN.fullmatch(token)
        if match is not None:
            name = next(group for group in match.groups() if group)
            code = code_of(name)
            found[code if code not in found else name.replace("_", "-")] = token
    return found
