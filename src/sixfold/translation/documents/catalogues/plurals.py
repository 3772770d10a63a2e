"""The plural forms of languages, as gettext writes them."""

from __future__ import annotations

import re

_ONE_FORM = "nplurals=1; plural=0;"
_NOT_ONE = "nplurals=2; plural=(n != 1);"
_MANY = "nplurals=2; plural=(n > 1);"
_SLAVIC = "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"


def _codes(words: str) -> list[str]:
    return words.split()


_BY_LANGUAGE = {
    **dict.fromkeys(_codes("bo dz id ja jv ka ko km lo ms my th ug vi wo yue zh"), _ONE_FORM),
    **dict.fromkeys(
        _codes(
            "af an ast az bg bn ca da de el en eo es et eu fi fo fur fy gl gu ha he hi hu hy ia it kk kl kn ku ky lb "
            "ml mn mr nah nap nb ne nl nn no or pa pap pms ps pt rm rw sd se si so son sq sv sw ta te tk ur yi"
        ),
        _NOT_ONE,
    ),
    **dict.fromkeys(_codes("ach ak am arn br fa fil fr gun ln mfe mg mi oc pt_br tg ti tr uz wa"), _MANY),
    **dict.fromkeys(_codes("be bs hr ru sr uk"), _SLAVIC),
    "ar": "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);",
    "cs": "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;",
    "cy": "nplurals=4; plural=(n==1) ? 0 : (n==2) ? 1 : (n != 8 && n != 11) ? 2 : 3;",
    "ga": "nplurals=5; plural=n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4;",
    "gd": "nplurals=4; plural=(n==1 || n==11) ? 0 : (n==2 || n==12) ? 1 : (n > 2 && n < 20) ? 2 : 3;",
    "is": "nplurals=2; plural=(n%10!=1 || n%100==11);",
    "lt": "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);",
    "lv": "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);",
    "mk": "nplurals=2; plural=(n==1 || n%10==1 ? 0 : 1);",
    "mt": "nplurals=4; plural=(n==1 ? 0 : n==0 || (n%100>1 && n%100<11) ? 1 : (n%100>10 && n%100<20) ? 2 : 3);",
    "pl": "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);",
    "ro": "nplurals=3; plural=(n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2);",
    "sk": "nplurals=3; plural=(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2;",
    "sl": "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);",
}


def plural_forms(code: str) -> str | None:
    """Return the Plural-Forms of a language by its code, such as zh or pt_BR; None for a language that is not known."""
    code = code.replace("-", "_").lower()
    return _BY_LANGUAGE.get(code) or _BY_LANGUAGE.get(code.split("_")[0])


def is_first_form_for_one(rule: str) -> bool:
    """Return whether the first form of a Plural-Forms stands for one thing only, and not for 0 or 21 things too."""
    expression = re.sub(r"[\s();]", "", rule.rpartition("plural=")[2])
    return expression == "n!=1" or expression.startswith("n==1?0")
