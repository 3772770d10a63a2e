"""The negations of Chinese and English texts: whether a text has any, and what it says without one of them."""

from __future__ import annotations

import re

# Words with a character of negation that say nothing of the kind, questions, and double negations.
_HARMLESS = re.compile(
    r"([\u4e00-\u9fff]{1,2})不\1|[\u4e00-\u9fff]没\b|有没有|有无|是否|能否|可否|不[是好对行会]吗|不就|不得不|不[能可会]不|不无|"
    "[没无]有?不|莫不|不是没|要不|差不|不过|不但|不仅|不光|不单|不只|不止|不断|不久|不少|不错|不管|不论|无论|非常|无数|别人|特别|"
    "分别|区别|差别|级别|性别|类别|个别|别的|别墅|告别|未来|非洲|南非|对不起|了不起|不得了|不一会|不由|不禁|不妨|不料|不愧|不幸|不惜|"
    "不时|不已|不同|不用说|不用谢|不要脸|不客气|没关系|不好意思|没事|好不|动不动|不如|不然|非[^，。]{0,8}不可|不[^，。]{1,12}不|没[^，。]{1,8}不|"
    "不[^，。]{1,8}没|没[^，。]{1,8}没|不免|不住|舍不得|恨不得|巴不得|不知[^道]|说不定|不一定|不要紧|不见了|不到|没多久|没过|没等|之前|以前|"
    "[从再]?没有?[^，。]{0,4}[这那]么|没有?[^，。]{1,6}[高大好多快长]|好久不见|很久没|没想到|不敢当|不怎么|不成|不吃|不亚于|不外|谁不|哪[个里有]?不|怎[么能]?不|"
    "何不|岂不|不就是|何尝|不只是|不再|不在|不行|不下|不愿|不肯|不敢|不给|吗？|没有了|不了|除[了非]|只有|才[会能]|无不|没什么|没有?多|没有[?？]|没有没|不是[^，。]{1,9}(?:就是|嘛)|连?赔不是"
)
_CHINESE_NOT = re.compile(
    "没有|不是|不会|不能|不要|不想|不喜欢|不认|不需|不必|不知道|不应|不该|不懂|没人|没看|没听|没能|不用|不怕|不许|不准|不属|不信|"
    "不打算|不相信|不记得|不明白|不可能|不可以|从不|从未|从来不|从来没|并不|并未|并没|绝不|无法|尚未|未能|未曾|仍未|毫无|并无|(?<![沉吞淹埋出隐覆])没(?![有错准落收顶劲趣精命]|来得)"
)
_CHINESE_NEGATIVE = re.compile(
    "[不没未无别非勿莫毋甭否免拒难防岂亏才欠拦焉禁忘唔]|幸好|缺乏|只好|哪有|停航|好认|算了|得了吧|取消|作废|文盲|漏|假|空|坏|蒙在鼓里|省得|既怕|光|满|怎么|有什么|哪|例外|小心|懒得|竟|居然|有什么用"
)
_NOT = r"not|no|never|none|nothing|nobody|nowhere|neither|nor|cannot|without|non"
_ENGLISH_NOT = re.compile(rf"\b(?:{_NOT}|[dD]ont|[cC]ant)\b|n['’]t\b", re.IGNORECASE)
_SURELY_NOT = re.compile(
    r"(?:\w['’](?:m|s|re|ll|d|ve)|\b(?:is|are|was|were|do|does|did|has|have|had|will|would|could|should|can|may|might|must"
    r"|am|it|be|but|and|often|why)) not\b|n['’]t\b"
    r"|\b(?:there|is|are|was|were|have|has|had|with|made|be)(?:['’]s)? no\b(?! longer)"
    r"|\b(?:cannot|never|nobody)\b|^(?:Not|Do not)\b",
    re.IGNORECASE,
)
# Questions, and turns of phrase that Chinese expresses without a negation.
_ENGLISH_HARMLESS = re.compile(
    r"n['’]t (?:you|we|he|she|it|they|I|that|this|there)\b|^(?:why )?(?:isn|aren|doesn|didn|won|wouldn|haven|hasn|can"
    r"|couldn|shouldn)['’]t|\b(?:never mind|can(?:no|['’])t (?:help|wait|but|stop|believe)|could(?:n['’]t| not) help|"
    r"not only|not until|n['’]t (?:\w+ ){0,3}until|(?:not|n['’]t) (?:be )?(?:very |too )?long|never (?:fail|cease)s?|"
    r"not to mention|no doubt|why not|"
    r"(?:not|n['’]t) (?:just|merely|simply|only|mind|worry|long|far|stop|bother\w*|be bothered|less)|nothing but|"
    r"no more than|"
    r"no (?:sooner|matter|wonder)|last but not least|(?:not|n['’]t) (?:so|as|the same|too|enough|all|every|always|"
    r"necessarily|seen|care|like)|never\b.{0,30}\bbefore|won['’]t you|or not|if not|why (?:don|not)|for nothing|better|"
    r"so (?:that )?[^,.]{1,30}n['’]t)\b",
    re.IGNORECASE,
)
# What says in English what Chinese says with a negation.
_ENGLISH_NEGATIVE = re.compile(
    r"\b(?:absen\w*|avoid\w*|ban(?:s|ned)?|bare(?:ly)?|beyond|block\w*|cancel\w*|ceas\w+|den(?:ies|ied|ying)|"
    r"devoid|disappear\w*|doubt\w*|except\w*|exempt\w*|fail\w*|far from|few(?:er)?|forbid\w*|forbade|forgot\w*|"
    r"free|hardly|hate\w*|if only|ignor\w*|instead|keep\w* (?:from|off)|kept|lack\w*|less|little|loses|loss|"
    r"missed|missing|neglect\w*|opposed?|out of|overlook\w*|prefer\w*|prevent\w*|prohibit\w*|quit|rather|rarely|"
    r"refus\w+|reject\w*|reluctant\w*|resist\w*|rid|scarce\w*|seldom|short|skip\w*|spare\w*|stuck|too|unable|void|"
    r"withdr\w+|withh[eo]ld|wonder\w*|yet|poor(?:ly)?|abolish\w*|still|empty|innocent|abandon\w*|struggl\w*|"
    r"easi\w+|forbidden|nonsense|vain|impossible|incapable|inability|inadequate|invisible|invalid|inaccessible|"
    r"inaccurate|incomplete|incorrect|indistinguishable|ineffective|insufficient|indifferent|ill(?:egal|icit|"
    r"iterate)\w*|im(?:mature|moral|patient|perfect|practical|proper|polite)\w*|inevitabl\w*|irr(?:egular|elevant|"
    r"esistible|espective|esponsible|eversible)\w*|dis(?:agree|allow|approv|hones|lik|obey|qualif|regard|"
    r"trust)\w*|mis(?:judg|plac|trust|understand|understood)\w*|steril\w*|stop\w*|before|since|silent|secret|wary|"
    r"warn\w*|differ\w*|either|whether|substitut\w*|foolish|questionable|objects?|in place of|last|from scratch|"
    r"cynical|off|sober|disabl\w*|losing|lost|until|un(?!der|til|ion|it|ivers|ique|i|fortunate|less\b|like\b)\w{3,}|\w{3,}less(?:ly|ness)?)\b",
    re.IGNORECASE,
)


# Words with a character of negation that negate nothing, and questions such as 能不能.
_NO_NEGATION = re.compile(
    r"(?<!从)([\u4e00-\u9fff]{1,2}) ?不 ?\1|有没有|有无|是否|能否|可否|差不多|不过|不但|不仅|不光|不单|不只|不止|不断|"
    r"不久|不少(?!于)|不错|(?<!我)不管|不论|无论|非常|无数|别人|特别|分别|区别|差别|级别|性别|类别|个别|别的|别墅|告别|未来|非洲|南非|对不起|了不起|不由|不禁|"
    "不料|不时|不已|不如|不一会|动不动|不妨|不便|不到|不一样|忍不住|[沉吞淹埋出隐覆]没|没收|没落|不得不|不得了|无非|莫名|莫非|不可不|非[^，。]{0,8}不可"
)
_ENGLISH_NO_NEGATION = re.compile(
    r"\b(?:why (?:don['’]t|not)|not (?:only|just|merely|simply|solely|long ago)"
    r"|no longer than|no doubt|no matter|no wonder|no sooner|no more than|in no time"
    r"|no\.(?= ?\d)"
    r"|(?:is|are|was|were|do|does|did|has|have|had|will|would|could|should|can)n['’]t (?:I|you|he|she|it|we|they)\?)",
    re.IGNORECASE,
)
# Each row: a negation, and what takes its place in the same text without it.
_WITHOUT: dict[str, list[tuple[re.Pattern[str], str]]] = {
    "zh": [
        (re.compile(pattern), new)
        for pattern, new in (
            ("从来没有?|从未", "曾"), ("从来不|从不", "总是"), ("没有", "有"), ("尚未", "已"),
            ("未能|无法|没法", "能"), ("并[不未没]|绝不", ""), ("无", "有"), ("别", "请"), ("[不没未非勿莫]", ""),
        )
    ],
    "en": [
        (re.compile(pattern, re.IGNORECASE), new)
        for pattern, new in (
            (r"\b(?:do|does|did)(?: not|n['’]t) ", ""), (r"\b(?:can['’]t|cannot|can not)\b", "can"),
            (r"\bwon['’]t\b", "will"), (r"\bshan['’]t\b", "shall"), (r"n['’]t\b| not\b|^not ", ""),
            (r"\bnever ", ""), (r"\bnothing\b", "something"), (r"\bnobody\b|\bno one\b", "somebody"),
            (r"\bno ", ""), (r"\bnone\b", "some"), (r"\bwithout\b", "with"), (r"\bnowhere\b", "somewhere"),
            (r"\bneither\b", "either"), (r"\bnor\b", "or"), (r"\bnon-?(?=[a-z]{3})", ""),
        )
    ],
}  # fmt: skip
_CHINESE_NEGATION = re.compile("[不没未无别非勿莫毋甭否]")
_EXCEPTIONS = {"zh": _NO_NEGATION, "en": _ENGLISH_NO_NEGATION}
MAX_NEGATIONS = 3  # of a sentence that are taken out, each in a text of its own


def has_negation(text: str, language: str) -> bool:
    """Return whether a text in `zh` or `en` has a word of negation, whatever it does to the sentence."""
    if language == "zh":
        return _CHINESE_NEGATION.search(_NO_NEGATION.sub("，", text)) is not None
    return _ENGLISH_NOT.search(text) is not None


def without_negations(text: str, language: str) -> list[str]:
    """Return a text in `zh` or `en` without one of its negations, for each of them: "he can't" becomes "he can".

    The texts need not be good ones: they are only compared with the text that has the negation.
    """
    taken = [match.span() for match in _EXCEPTIONS[language].finditer(text)]
    texts = []
    for pattern, new in _WITHOUT[language]:
        for match in pattern.finditer(text):
            if not any(start < match.end() and match.start() < end for start, end in taken):
                taken.append(match.span())
                texts.append(text[: match.start()] + new + text[match.end() :])
                if len(texts) == MAX_NEGATIONS:
                    return texts
    return texts


def is_negated(text: str, language: str) -> bool:
    """Return whether a text in `zh` or `en` plainly says that something is not so."""
    if language == "zh":
        return _CHINESE_NOT.search(text) is not None and _CHINESE_NOT.search(_HARMLESS.sub("，", text)) is not None
    return _SURELY_NOT.search(text) is not None and not _ENGLISH_HARMLESS.search(text)


def may_be_negative(text: str, language: str) -> bool:
    """Return whether a text in `zh` or `en` has any word that may render a negation."""
    if language == "zh":
        return _CHINESE_NEGATIVE.search(text) is not None
    return _ENGLISH_NOT.search(text) is not None or _ENGLISH_NEGATIVE.search(text) is not None
