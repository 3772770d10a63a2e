"""What tells languages of one script apart without a profile: their most frequent words, and letters of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from sixfold.text.languages import LETTERS, prose_of

# Frequent words of each language, function words above all.
_WORDS = {
    "en": "the of and to in is that for it was on are as with his they at be this from have or by one had not but "
    "what all were when we there can an your which their said if do will each about how up out them then she "
    "many some so these would other into has her two like him see time could no make than been its who now my "
    "over did down only way find use may long little very after words called just where most know get through "
    "back much before also around another came come work three must because does part even place well such here "
    "take why things help put years different away again off went old number should our you he i a me us any "
    "being those while during without within between under until against both more own same too don't it's i'm "
    "isn't doesn't can't didn't let",
    "de": "in an so was all am der und das ist ich nicht ein eine einem einen einer eines zu mit sich auf für dem den "
    "des im wie sie er es wir auch als bei nach aus werden wird wurde sind sein seine seiner ihre ihr hat haben "
    "kann aber oder wenn nur noch schon vom zum zur über unter vor durch gegen zwischen während mann frau leute "
    "mehr sehr steht sitzt geht hallo danke bitte guten tag morgen abend nein mein meine dein mir mich dich uns "
    "ihnen ihm wo warum weil dass dieser diese dieses jetzt hier immer wieder zwei drei vier fünf kleine "
    "kleiner kleines große großen junge junger mädchen kinder etwas viel viele gibt sagt machen gehen kommt "
    "muss müssen sollte könnte würde waren hatte kein keine keinen bis beim seit ohne heute gestern neue neuen "
    "anderen einige einigen hund straße",
    "fr": "on me a le les des est et une dans que qui pour pas sur avec ce cette ces son ses sa il elle ils elles "
    "nous vous au aux du je tu mais ou où sont être était ont fait par plus leur leurs deux très tout tous "
    "comme bien même sans sous entre après avant chez homme femme portant devant en un la de à bonjour merci "
    "oui ici moi toi lui notre votre nos vos mes c'est n'est j'ai qu'il qu'elle d'un d'une ne quand comment "
    "pourquoi parce donc alors encore toujours jamais rien peut peux faire aller vais suis sommes êtes avez "
    "avons avait aussi beaucoup jeune jeunes petit petite garçon fille enfants chien eau trois quatre cinq "
    "personnes noir blanc rouge aujourd'hui demain",
    "es": "a me no he el los las una unos y que en un por con para su sus del al se lo como más pero le ya o este "
    "esta estos está están son ser fue era hay muy sin sobre también entre cuando todo todos nos desde donde "
    "quien ni yo tiene hombre mujer de la es hola gracias sí buenos días qué cómo dónde porque si tú él ella "
    "ellos nosotros te bien hoy mañana ayer aquí allí siempre nunca nada algo dos tres cuatro cinco niño niña "
    "niños gente perro agua calle hace hacer puede estar tengo tienen quiero voy vamos eso esto ese esa cada "
    "otro otra hasta durante contra según estoy había han",
    "it": "a me no i il lo gli della delle dei degli del che di un una uno e è in non per con sono si da come anche "
    "più ma nel nella nelle alla alle al ai questo questa questi quello suo sua suoi ha hanno era essere molto "
    "quando dove tra uomo donna mentre dalla dal sul sulla ciao grazie buongiorno sì perché cosa chi io tu lui "
    "lei noi voi loro ti ci bene oggi domani ieri qui sempre mai niente qualcosa due tre quattro cinque bambino "
    "bambina bambini cane acqua strada fare può posso devo vorrei sto stai sta stanno abbiamo avere ancora già "
    "tutti tutto molti ogni altro altra dopo prima senza contro fino",
    "pt": "a me o os as um uma uns e que do da dos das em no na nos nas por para com não se mais como mas foi ao à "
    "são é está estão ser tem seu sua seus suas ele ela eles isso este esta muito também entre quando homem "
    "mulher pelo pela já de olá obrigado obrigada sim dia você vocês eu nós meu minha porque aqui hoje amanhã "
    "ontem sempre nunca algo dois duas três quatro cinco menino menina crianças cachorro água rua fazer pode "
    "posso quero vou vai vamos isto cada outro outra depois antes até sem sobre ainda só tudo todos tenho temos "
    "estou onde quem qual",
    "nl": "in we of had was me de het een en van ik te dat die niet zijn is op aan met als voor er maar om hem dan "
    "zou wat mijn men dit zo door over ze zich bij ook tot je mij uit der daar haar naar heb hoe heeft hebben "
    "deze u want nog zal onder wordt worden geen naast tegen staat loopt hallo bedankt alsjeblieft goede nee "
    "jij hij zij wij jullie ons hun waar waarom wanneer wie hier altijd nooit niets iets twee drie vier vijf "
    "kleine jongen meisje kinderen mensen vrouw hond straat huis doen gaan gaat komt kan kunnen moet moeten "
    "willen waren hebt na zonder tussen vandaag morgen gisteren veel alle andere omdat goed",
    "sv": "i och att det som en på är av för med den till inte han hon ett om var jag men sig så från när hade vi kan "
    "skulle mot sedan mycket alla något under efter eller utan där ut över några ska blir man kvinna hej tack "
    "nej du ni oss mig vad vem varför hur här alltid aldrig två tre fyra fem liten lilla pojke flicka människor "
    "hund vatten gata göra går kommer måste vill mellan idag igår många andra eftersom också bra sitter står "
    "har",
    "da": "under her to i og at det er en af på til den for som med de ikke der var et han hun jeg men sig fra havde "
    "har vi kan skal ved efter eller også hvor når meget mand kvinde over ud op hej tak nej du mig hvad hvem "
    "hvorfor hvornår hvordan altid aldrig noget tre fem lille dreng pige børn mennesker hund vand gade gøre går "
    "kommer må vil uden mellem mange andre fordi godt sidder står",
    "nb": "over under her i og at det er en av på til den for som med ikke der var et han hun jeg men seg fra hadde "
    "har vi kan skal ved etter eller også hvor når mye mann kvinne ut opp hei takk nei meg deg hva hvem hvorfor "
    "hvordan alltid aldri noe noen to tre fem liten gutt jente mennesker hund vann gate gjøre går kommer må vil "
    "uten mellom mange andre fordi bare være ble blir dette disse hvis å nå hos nok sitter står",
    "cs": "to on my a v se na je že s z do o ve k i po za jako by si už ale jsou byl byla bylo být pro od tak své "
    "jeho její které který která není jen při když nebo ze muž žena dva dvě před mezi pod nad mu mají má sedí "
    "stojí jde lidí ahoj děkuji prosím dobrý ano ne já ty co kdo kde kdy proč jak tady tam vždy nikdy nic něco "
    "tři čtyři pět malý malá chlapec dívka děti lidé pes voda ulice dělat jsem jsi jsme jste byli mám může musí "
    "chce chci bez proti během dnes zítra včera hodně mnoho protože také dobře mladý mladá",
    "pl": "on my w i z na się do nie że to jest o jak ale po co tak za od jego jej są był była było być dla przez czy "
    "już tylko przy gdy który która które oraz ze ma może mężczyzna kobieta pod nad cześć dziękuję proszę dzień "
    "dobry ja ty kto gdzie kiedy dlaczego tutaj tam zawsze nigdy nic coś dwa trzy cztery pięć mały mała "
    "chłopiec dziewczyna dzieci ludzie woda ulica robić jestem jesteś byli mamy musi chce chcę bez podczas dziś "
    "jutro wczoraj dużo wiele inny ponieważ także dobrze",
    "ro": "a și în de la cu pe este un o nu care să din ce mai pentru se că sunt au fost prin sau dar lui ei acest "
    "această într-o într-un bărbat femeie bună mulțumesc vă rog da eu noi voi cine unde când aici acolo "
    "niciodată nimic ceva doi două trei patru cinci băiat fată copii oameni câine apă stradă casă merge vine "
    "poate trebuie vrea vreau avem aveți fără între azi mâine ieri mult mulți bine după până",
    "hu": "a az és hogy nem is egy van meg de ez csak már ki azt mint volt ha vagy még el kell minden be fel férfi nő "
    "egyik miatt között alatt szia köszönöm kérem jó igen én te ő mi hol mikor miért hogyan itt ott mindig soha "
    "semmi valami két három négy öt kis kicsi fiú lány gyerekek emberek kutya víz utca ház megy jön tud akar "
    "vagyok vagyunk voltak lesz nélkül ellen ma holnap tegnap sok más mert jól után előtt",
    "fi": "me he ja on ei se että oli hän mutta ovat kun niin kuin myös joka sen ne tai jos jotka vain olla ollut "
    "mies nainen kanssa jälkeen ennen sekä hei kiitos hyvä kyllä minä sinä te mitä kuka missä milloin miksi "
    "miten täällä siellä aina mitään jotain kaksi kolme neljä viisi pieni poika tyttö lapset ihmiset koira vesi "
    "katu talo tehdä menee tulee voi täytyy haluaa haluan olen olet olemme olivat ilman aikana tänään huomenna "
    "eilen paljon koska hyvin tämä tuo nämä",
    "tr": "ve bir bu da de için ile çok daha olarak gibi kadar olan var değil ne ama en sonra her o ki mi mı şey ben "
    "sen onun adam kadın üzerinde olduğu merhaba teşekkürler lütfen evet hayır biz siz onlar kim nerede zaman "
    "neden nasıl burada orada hiç iki üç dört beş küçük büyük çocuk kız çocuklar insanlar köpek sokak ev "
    "gidiyor geliyor ediyor oldu olacak yok vardı istiyorum bugün yarın dün az diğer çünkü iyi önce beni bana "
    "sana",
    "vi": "và của là có không được cho trong một những các với người này đã khi để từ đến ra như nhưng cũng ở về rất "
    "tôi anh nó hay vào lại bị sẽ xin chào cảm ơn vâng bạn chị em chúng ta họ ai gì đâu nào tại sao thế đây đó "
    "luôn hai ba bốn năm nhỏ lớn trai gái trẻ con chó nước đường nhà làm đi thể phải muốn hôm nay ngày mai "
    "nhiều khác vì tốt sau trước đang",
    "id": "yang dan di dengan untuk dari ini itu pada tidak dalam akan adalah ke sebuah seorang saya juga oleh karena "
    "ada mereka atau sudah bisa kami kita lebih telah dapat halo terima kasih tolong ya kamu anda dia siapa apa "
    "mana kapan mengapa bagaimana sini sana selalu pernah sesuatu satu dua tiga empat lima kecil besar anak "
    "perempuan orang anjing jalan rumah membuat pergi datang harus ingin sedang tanpa antara hari besok kemarin "
    "banyak lain baik setelah sebelum seperti para secara",
}
# Words of these lists that English texts have too, as words or in names. They count only beside another word of the
# same language.
_WEAK_WORDS = (
    "el la las los del de en y al lo le les des du et au aux sur sous der das den van het di da dei degli della "
    "delle dos e il per non son era par plus sans tout pas hay sin hat dove pod man men die hem dan ben sen ma uno "
    "ha var anh ada mi tag na si ne ya para voi due tres nos te ti ci mai prima con ai em ta ba nay az ev kim pes "
    "vier mig hun ons este dia sim tu io eau rouge petit petite noir vil tak har bra kan alle pieni kis ott itt "
    "vine merge trei anda hari tam jak co ja mamy loro ieri antes bien agua gente ciao "
)
# Letters that English does not have, for languages with few short words or many of these letters.
_OWN_LETTERS = {
    "de": "äöüß", "fr": "éèêàçùœîôâû", "es": "áéíóúñ", "it": "èàùòì", "pt": "ãõçáéêâóú", "sv": "åäö", "da": "æøå",
    "nb": "æøå", "cs": "ěščřžýáíéůúťďň", "pl": "ąęłśżźćńó", "ro": "șțăâîşţ", "hu": "őűáéíóöüú", "fi": "äö",
    "tr": "ğışçöü", "vi": "ăâđêôơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹàáãèéìíòóõùúý",
}  # fmt: skip
# Letters that some languages of a script have and others do not.
_LETTERS_BY_SCRIPT = {
    "Cyrillic": {
        "ru": "ыэё", "uk": "іїє", "be": "ўіыэё", "bg": "ъ", "sr": "јљњћђџ", "mk": "јљњџѓќѕ", "kk": "әғқңөұүһіыэ",
        "ky": "ңөүыэ", "mn": "өүыэ", "tt": "әөүҗңһыэ", "tg": "ғӣқӯҳҷэъ",
    },
    "Arabic": {
        "ar": "ةىيكأإؤ", "fa": "پچژگکی", "ur": "ٹڈڑںےھہپچگکی", "ps": "ټډړښځڅۍېپچ", "ug": "ېۇۆۈۋەپچگ",
        "sd": "ٻڀٺٽڄڃڇڏڊڍڙڦڪڳڱڻ",
    },
    "Devanagari": {"mr": "ळ", "sa": "ः"},
    "Hebrew": {"he": "", "yi": "ײװױ"},
}  # fmt: skip
LISTED_LANGUAGES = tuple(_WORDS)

# The evidence of a word in Latin letters for a language, as the logarithm of how much likelier the word is there than
# in a language without a list. The values were fitted to text in 40 languages of one word to a whole line.
LISTED_WORD = 3.5  # a word of the list of the language
WEAK_WORD = 1.0  # a word of its list that English texts have too
OTHER_LIST = -0.8  # a word that only other languages have on their lists
UNLISTED_WORD = -0.4
MAX_UNLISTED_WORDS = 10  # that count: titles and tables have many
OWN_LETTERS = 1.5  # a word with letters that English lacks, all of which the language has
FOREIGN_LETTER = -3.0  # a word with a letter that the language lacks
MAX_EVIDENCE = 12.0  # more is scaled down, because the words of a text are not independent
# The same for letters of other scripts, each of which counts once.
OWN_LETTER = 2.0
LETTER_OF_ANOTHER = -2.0
MISSING_LETTER = (
    -0.012
)  # for each letter of the text, for each letter of its own that a language has and the text lacks
MIN_MISSING_LETTERS = -4.0


def _inverted(table: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return the languages of each entry, from a table of the entries (words or letters) of each language."""
    languages: dict[str, tuple[str, ...]] = {}
    for language, entries in table.items():
        for entry in dict.fromkeys(entries):
            languages[entry] = (*languages.get(entry, ()), language)
    return languages


_BY_WORD = _inverted({language: words.split() for language, words in _WORDS.items()})
_WEAK = frozenset(_WEAK_WORDS.split())
_ENGLISH = frozenset(_WORDS["en"].split())
_BY_LETTER = _inverted(_OWN_LETTERS)
_LATIN_WORD = re.compile(f"[{LETTERS['Latin']}]+(?:['’][{LETTERS['Latin']}]+)*")


def latin_words(text: str) -> list[str]:
    """Return the words of a text in Latin letters, in small letters and without code and addresses."""
    return [word.lower().replace("’", "'") for word in _LATIN_WORD.findall(prose_of(text))]


def word_evidence(text: str) -> dict[str, float]:
    """Return the log-odds of each language with a word list against one without, by the words of a text."""
    words = latin_words(text)
    weak = sum(word in _WEAK for word in words)
    unlisted = sum(word not in _BY_WORD for word in words)
    listed_elsewhere = OTHER_LIST * (len(words) - unlisted - weak)
    scores = dict.fromkeys(_WORDS, listed_elsewhere + UNLISTED_WORD * min(unlisted, MAX_UNLISTED_WORDS))
    for word in words:
        for language in _BY_WORD.get(word, ()):
            scores[language] += WEAK_WORD if word in _WEAK else LISTED_WORD - OTHER_LIST
        if not word.isascii():
            owners = _owners(frozenset(letter for letter in word if letter.isalpha() and not letter.isascii()))
            for language in scores:
                scores[language] += OWN_LETTERS if language in owners else FOREIGN_LETTER
    largest = max(scores.values())
    factor = MAX_EVIDENCE / largest if largest > MAX_EVIDENCE else 1.0
    return {language: factor * score for language, score in scores.items()}


def has_listed_word(words: Iterable[str], language: str) -> bool:
    """Return whether one of these words is on the list of a language and not one that English texts have too."""
    english = () if language == "en" else _WEAK | _ENGLISH
    return any(language in _BY_WORD.get(word, ()) and word not in english for word in words)


def _owners(marks: frozenset[str]) -> set[str]:
    """Return the languages that have all these letters; all languages where there are none, as in don’t."""
    owners = set(_WORDS)
    for letter in marks:
        owners.intersection_update(_BY_LETTER.get(letter, ()))
    return owners


def letter_evidence(text: str, script: str) -> dict[str, float]:
    """Return the log-odds of languages of a script other than Latin, by the letters that only some of them have."""
    present = _letters_of_script(script).intersection(text.lower())
    evidence = {}
    for language, own in _LETTERS_BY_SCRIPT.get(script, {}).items():
        shared, missing = len(present.intersection(own)), len(set(own) - present)
        evidence[language] = OWN_LETTER * shared + LETTER_OF_ANOTHER * (len(present) - shared)
        evidence[language] += max(MIN_MISSING_LETTERS, MISSING_LETTER * missing * len(text))
    return evidence


@cache
def _letters_of_script(script: str) -> frozenset[str]:
    return frozenset("".join(_LETTERS_BY_SCRIPT.get(script, {}).values()))
