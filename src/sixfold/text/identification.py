"""Detects a text in another language than expected, by its script or its most frequent words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from sixfold.text.languages import DENSE, LETTERS, LIKELY_LANGUAGE, SCRIPTS, count_characters, letters

SAMPLE_CHARACTERS = 2000  # from the beginning of a text
MIN_WORDS = 4  # a text in Latin letters needs, for its words to decide
MIN_LETTERS = 4  # a text in any other script needs
MIN_SCRIPT_SHARE = 0.8  # of one script in all letters; a text with less is a mixture and stays undecided
MIN_KANA_SHARE = 0.35  # of kana in a Japanese text; Chinese texts quote a few

# Function words that mark a language; words that are English too are left out.
_WORDS = {
    "en": "the of and to in is that for it was on are as with his they at be this from have or by one had not but "
    "what all were when we there can an your which their said if do will each about how up out them then she "
    "many some so these would other into has her two like him see time could no make than been its who now my "
    "over did down only way find use may long little very after words called just where most know get through "
    "back much before also around another came come work three must because does part even place well such here "
    "take why things help put years different away again off went old number should our you he i a me us off "
    "any being those while during without within between under until against both more own same too don't it's "
    "i'm isn't doesn't can't didn't let",
    "de": "der und das ist ich nicht ein eine einem einen einer eines zu mit sich auf für dem den des im wie sie er "
    "es wir auch als bei nach aus werden wird wurde sind sein seine seiner ihre ihr hat haben kann aber oder "
    "wenn nur noch schon vom zum zur über unter vor durch gegen zwischen während mann frau leute mehr sehr "
    "steht sitzt geht",
    "fr": "le les des est et une dans que qui pour pas sur avec ce cette ces son ses sa il elle ils elles nous vous "
    "au aux du je tu mais ou où sont être était ont fait par plus leur leurs deux très tout tous comme bien "
    "même sans sous entre après avant chez homme femme portant devant en un la de à",
    "es": "el los las una unos y que en un por con para su sus del al se lo como más pero sus le ya o este esta estos "
    "está están son ser fue era hay muy sin sobre también entre cuando todo todos nos desde donde quien ni yo "
    "tiene hombre mujer de la es",
    "it": "il lo gli della delle dei degli del che di un una uno e è in non per con sono si da come anche più ma nel "
    "nella nelle alla alle al ai questo questa questi quello suo sua suoi ha hanno era essere molto quando dove "
    "tra uomo donna mentre dalla dal sul sulla",
    "pt": "o os as um uma uns e que do da dos das em no na nos nas por para com não se mais como mas foi ao à são é "
    "está estão ser tem seu sua seus suas ele ela eles isso este esta muito também entre quando homem mulher "
    "pelo pela já de",
    "nl": "de het een en van ik te dat die niet zijn is op aan met als voor er maar om hem dan zou wat mijn men dit "
    "zo door over ze zich bij ook tot je mij uit der daar haar naar heb hoe heeft hebben deze u want nog zal "
    "onder wordt worden geen naast tegen staat loopt",
    "sv": "och att det som en på är av för med den till inte han hon ett om var jag men sig så från när hade vi kan "
    "skulle mot sedan mycket alla något under efter eller utan där ut över några ska blir man kvinna",
    "da": "og at det er en af på til den for som med de ikke der var et han hun jeg men sig fra havde har vi kan skal "
    "ved efter eller også hvor når meget mand kvinde over ud op",
    "cs": "a v se na je že s z do o ve k i po za jako by si už ale jsou byl byla bylo být pro od tak své jeho její "
    "které který která není jen při když nebo ze muž žena dva dvě před mezi pod nad mu mají má sedí stojí jde "
    "lidí",
    "pl": "w i z na się do nie że to jest o jak ale po co tak za od jego jej są był była było być dla przez czy już "
    "tylko przy gdy który która które oraz ze ma może mężczyzna kobieta pod nad",
    "ro": "și în de la cu pe este un o nu care să din ce mai pentru se că sunt au fost prin sau dar lui ei acest "
    "această într-o într-un bărbat femeie",
    "hu": "a az és hogy nem is egy van meg de ez csak már ki azt mint volt ha vagy még el kell minden be fel férfi nő "
    "egyik miatt között alatt",
    "fi": "ja on ei se että oli hän mutta ovat kun niin kuin myös joka sen ne tai jos jotka vain olla ollut mies "
    "nainen kanssa jälkeen ennen sekä",
    "tr": "ve bir bu da de için ile çok daha olarak gibi kadar olan var değil ne ama en sonra her o ki mi mı şey ben "
    "sen onun adam kadın üzerinde olduğu",
    "vi": "và của là có không được cho trong một những các với người này đã khi để từ đến ra như nhưng cũng ở về rất "
    "tôi anh nó hay vào lại bị sẽ",
    "id": "yang dan di dengan untuk dari ini itu pada tidak dalam akan adalah ke sebuah seorang saya juga oleh karena "
    "ada mereka atau sudah bisa kami kita lebih telah dapat",
}
# Words of these lists that English texts have too, as words or in names. They count only beside another word of the
# same language.
_WEAK_WORDS = (
    "el la las los del de en y al lo le les des du et au aux sur sous der das den van het di da dei degli della delle "
    "do dos e il per non son era par plus sans tout pas hay sin hat dove pod man men die hem dan ben sen ma uno ha "
    "var anh ada mi"
)
# Letters that English does not have, for languages with few short words or many of these letters.
_OWN_LETTERS = {
    "de": "äöüß", "fr": "éèêàçùœîôâû", "es": "áéíóúñ", "it": "èàùòì", "pt": "ãõçáéêâóú", "sv": "åäö", "da": "æøå",
    "cs": "ěščřžýáíéůúťďň", "pl": "ąęłśżźćńó", "ro": "șțăâîşţ", "hu": "őűáéíóöüú", "fi": "äö", "tr": "ğışçöü",
    "vi": "ăâđêôơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹàáãèéìíòóõùúý",
}  # fmt: skip
NAMES = {
    "en": "English", "zh": "Chinese", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian",
    "pt": "Portuguese", "nl": "Dutch", "sv": "Swedish", "da": "Danish", "cs": "Czech", "pl": "Polish", "ro": "Romanian",
    "hu": "Hungarian", "fi": "Finnish", "tr": "Turkish", "vi": "Vietnamese", "id": "Indonesian", "ja": "Japanese",
    "ko": "Korean",
}  # fmt: skip


def _inverted(table: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return the languages of each entry, from a table of the entries (words or letters) of each language."""
    languages: dict[str, tuple[str, ...]] = {}
    for language, entries in table.items():
        for entry in dict.fromkeys(entries):
            languages[entry] = (*languages.get(entry, ()), language)
    return languages


_BY_WORD = {
    word: ("en",) if "en" in languages else languages
    for word, languages in _inverted({language: words.split() for language, words in _WORDS.items()}).items()
}
_WEAK = frozenset(_WEAK_WORDS.split())
_BY_LETTER = _inverted(_OWN_LETTERS)
_LATIN_WORD = re.compile(f"[{LETTERS['Latin']}]+(?:['’][{LETTERS['Latin']}]+)*")
_QUOTED_CODE = re.compile(r"`[^`]*`")
_CODE_OR_ADDRESS = re.compile(r"[@\\/_<>{}=\d]|\w\.\w")  # in code, e-mail addresses and paths


def name_of(language: str) -> str:
    """Return the English name of a language; one that has no name here is described by its script."""
    if language in NAMES:
        return NAMES[language]
    scripts = SCRIPTS.get(language, ())
    return f"a language in {scripts[0]} letters" if scripts else language


def other_language(text: str, expected: str) -> str:
    """Return the language of a text if it is clearly not the expected one, and "" otherwise.

    Short texts, names, code and mixtures are never clear, and a language in Latin letters without a word list is not
    either.
    """
    expected = re.split("[-_]", expected.lower())[0]
    text = text[:SAMPLE_CHARACTERS]
    counts = Counter(
        {
            script: count_characters(letters(script), text)
            for script in (LIKELY_LANGUAGE if not text.isascii() else ["Latin"])
        }
    )
    weights = {script: size * (3 if script in DENSE else 1) for script, size in counts.items()}
    total = sum(weights.values())
    kana = counts["Hiragana"] + counts["Katakana"]
    if (
        kana >= max(2, MIN_KANA_SHARE * (kana + counts["Han"]))
        and 3 * (kana + counts["Han"]) >= MIN_SCRIPT_SHARE * total
    ):
        language = "ja"
    else:
        script = max(weights, key=weights.__getitem__)
        if weights[script] < MIN_SCRIPT_SHARE * total or counts[script] < MIN_LETTERS:
            return ""
        language = _language_by_words(text, expected) if script == "Latin" else LIKELY_LANGUAGE[script]
        if script != "Latin" and script in SCRIPTS.get(expected, ()):
            return ""
    return "" if language == expected or not SCRIPTS.get(expected) else language


def _language_by_words(text: str, expected: str) -> str:
    """Return the language whose word list fits a text in Latin letters best, or "" if no language clearly does."""
    prose = " ".join(run for run in _QUOTED_CODE.sub(" ", text).split() if not _CODE_OR_ADDRESS.search(run))
    words = [word.lower().replace("’", "'") for word in _LATIN_WORD.findall(prose)]
    if len(words) < MIN_WORDS or ("Latin" in SCRIPTS.get(expected, ()) and expected not in _WORDS):
        return ""
    hits: Counter[str] = Counter()  # words of each language's list
    strong: set[str] = set()  # languages with a word that is not weak
    marked: Counter[str] = Counter()  # other words, with letters of the language
    for word in words:
        languages = _BY_WORD.get(word, ())
        hits.update(languages)
        if word not in _WEAK:
            strong.update(languages)
        if not word.isascii():
            marked.update(
                {language for letter in word for language in _BY_LETTER.get(letter, ())}.difference(languages)
            )
    scores = {language: hits[language] + 0.7 * marked[language] for language in _WORDS}
    best = max(scores, key=scores.__getitem__)
    if best not in strong or scores[best] < max(1.7, 0.18 * len(words)):
        return ""
    rivals = [scores[language] for language in ("en", expected) if language in scores and language != best]
    return best if all(scores[best] > 2 * rival for rival in rivals) else ""
