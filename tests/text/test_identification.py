"""A text in another language than expected is detected by its script or its words; doubtful texts are accepted."""

import pytest

from sixfold.text.identification import name_of, other_language
from sixfold.text.languages import SCRIPTS

SENTENCES = {
    "en": ["We went to the library because it was raining all day.", "This is what they said when I asked about it."],
    "zh": ["我们昨天去了图书馆。", "这台机器的速度比以前的快得多，但是价格也更高。"],
    "de": ["Ich habe heute leider keine Zeit für dich.", "Der Hund läuft über die Straße und bellt."],
    "fr": ["Je ne sais pas où est la gare.", "Les enfants jouent dans le jardin avec leur chien."],
    "es": ["El perro está en la casa con los niños.", "No sé dónde está la estación, pero voy a preguntar."],
    "it": ["Non è questa la strada che porta alla stazione.", "Il cane è nella casa con i bambini e gli amici."],
    "pt": ["O cachorro está na casa com as crianças.", "Não sei onde fica a estação, mas vou perguntar."],
    "nl": ["Ik weet niet waar het station is.", "De hond loopt door het huis en blaft naar de kinderen."],
    "sv": ["Jag vet inte var stationen är.", "Hunden är i huset med barnen och deras vänner."],
    "cs": ["Nevím, kde je nádraží, ale zeptám se.", "Pes běží přes ulici a štěká na děti, které si hrají."],
    "pl": ["Nie wiem, gdzie jest dworzec, ale zapytam.", "Pies biegnie przez ulicę i szczeka na dzieci."],
    "tr": ["Bu kitap çok güzel ama biraz uzun.", "Çocuklar bahçede köpek ile oynuyor ve gülüyor."],
    "vi": ["Tôi không biết nhà ga ở đâu.", "Con chó chạy trong nhà với những đứa trẻ."],
    "ja": ["今日はとても天気がいいですね。", "駅がどこにあるのか分かりません。", "コンピュータを使って翻訳します。"],
    "ko": ["오늘은 날씨가 아주 좋습니다.", "역이 어디에 있는지 모르겠어요."],
    "ru": ["Сегодня очень хорошая погода.", "Я не знаю, где находится вокзал."],
    "ar": ["الطقس جميل جدا اليوم"],
    "el": ["Δεν ξέρω πού είναι ο σταθμός."],
    "hi": ["मुझे नहीं पता कि स्टेशन कहाँ है"],
    "th": ["วันนี้อากาศดีมาก"],
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_told_apart_from_english_and_chinese_and_fits_its_own_language(language):
    for text in SENTENCES[language]:
        for expected in ("en", "zh-Hans"):
            detected = other_language(text, expected)
            assert detected == ("" if expected.startswith(language) else language), text
        assert other_language(text, language) == "", text


@pytest.mark.parametrize("expected", ["en", "zh"])
@pytest.mark.parametrize(
    "text",
    [
        "", "OK", "12:30", "Berlin", "São Paulo", "José María García López", "Der Spiegel", "La La Land", "Le Monde",
        "C'est la vie", "Angela Merkel, Emmanuel Macron, Pedro Sánchez", "git commit -m fix", "print(a, b)",
        "https://de.wikipedia.org/wiki/Das_ist_ein_Test_und_nicht_mehr", "`der die das und ist nicht`",
        "{name}: {value}",
        "在 Kubernetes 集群中使用 Docker 容器", "我爱 machine learning",
        "α, β and γ", "лол", "Привет means hello", "Lorem ipsum",
    ],
)  # fmt: skip
def test_short_texts_names_code_and_mixtures_are_accepted(text, expected):
    assert other_language(text, expected) == ""


@pytest.mark.parametrize(
    "text",
    [
        "The restaurant “Zum goldenen Hirsch” in München was closed when we came.",
        "He said “je ne sais pas” and left the room without another word.",
        "In Die Zeit, the author of Das Kapital was called the father of it all.",
        "Las Vegas, Los Angeles and San José are cities that many people visit.",
        "Was will man in a hat do in an art war?",
        "Red cars, blue vans, green trucks.",
        "Los Angeles Lakers vs. San Antonio Spurs en vivo",
        "San Juan de los Lagos y El Paso de la Arena",
        "Paris La Defense de la Seine et les Halles",
        "Leonardo da Vinci, Vasco da Gama",
        "Boulogne-sur-Mer, Neuilly-sur-Seine, Aix-en-Provence",
        "Al Pacino, Al Gore, Al Capone",
        "Rembrandt van Rijn, Rogier van der Weyden",
        "Iron Man, Spider Man, Mad Men",
        "Five dollars per person per day",
        "Ben Affleck, Ben Stiller, Ben Kingsley",
    ],
)
def test_english_with_foreign_words_is_english(text):
    assert other_language(text, "en") == ""


@pytest.mark.parametrize("text", ["《となりのトトロ》是宫崎骏导演的一部著名动画电影", "这个词在日语里写作「の」"])
def test_chinese_with_japanese_words_is_chinese(text):
    assert other_language(text, "zh") == ""


def test_a_language_without_a_list_of_words_is_never_told_from_others_in_latin_letters():
    assert other_language(SENTENCES["de"][0], "sw") == ""
    assert other_language(SENTENCES["de"][0], "toy") == ""
    assert other_language(SENTENCES["ru"][0], "sw") == "ru"


def test_every_language_has_a_name():
    assert name_of("de") == "German"
    assert name_of("ru") == "a language in Cyrillic letters"
    assert all(name_of(language) for language in SCRIPTS)
