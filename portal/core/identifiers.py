"""Names that decide who somebody is, as people read them: no mixed scripts, and none that looks like another.

Follows UTS 39 (Unicode Security Mechanisms): scripts in common use only, the restriction level *highly
restrictive*, and a skeleton by which two names are compared.
"""

# ruff: noqa: RUF001  letters that look like others are what this is about

from __future__ import annotations

import unicodedata
from typing import Final

# By the first word of a character's name. Scripts in limited or historic use (Cherokee, Lisu, Coptic …) have
# alphabets that look like Latin, and UTS 39 restricts them.
_NAMES: Final = """
    LATIN CYRILLIC GREEK ARMENIAN GEORGIAN HEBREW ARABIC DEVANAGARI BENGALI GURMUKHI GUJARATI ORIYA TAMIL TELUGU
    KANNADA MALAYALAM SINHALA THAI LAO TIBETAN MYANMAR ETHIOPIC KHMER CJK HIRAGANA KATAKANA BOPOMOFO HANGUL
"""
_SCRIPTS: Final = frozenset(_NAMES.split())
# Han with what Chinese, Japanese and Korean are written with, each also beside Latin.
_TOGETHER: Final = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
)
# Letters of phonetic alphabets: small capitals and turned letters.
_PHONETIC: Final = ((0x0250, 0x02FF), (0x1D00, 0x1DBF), (0xA720, 0xA7FF), (0xAB30, 0xAB6F))
# Pairs of a character and the ASCII character that it looks like.
_ALIKE: Final = """
    0o 1l Il
    аa ьb сc ԁd еe һh іi јj ӏl Ӏl оo рp ԛq гr ѕs тt уy үy ѵv ԝw хx кk мm
    АA ВB СC ЕE НH Іl ЈJ КK МM ОO РP ԚQ ЅS ТT УY ҮY ѴV ԜW ХX
    αa βb ϲc ηn ιi κk μu νv οo ρp σo τt υu χx ϳj γy ωw
    ΑA ΒB ΕE ΖZ ΗH Ιl ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX ϹC ͿJ
    օo ոn սu հh զq ցg յj ՏS ՕO ԼL ՍU
    ıi ȷj ƒf ĸk
"""
_LOOK: Final = {pair[0]: pair[1] for pair in _ALIKE.split()}


def problem_with(text: str) -> str:
    """Return why the text cannot be a name. Empty if it can."""
    scripts = {_script_of(letter) for letter in text if not letter.isascii()}
    if any(letter.isascii() and letter.isalpha() for letter in text):
        scripts.add("LATIN")
    if not scripts <= _SCRIPTS:
        return "use letters of one script in common use"
    if len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER):
        names = " and ".join(sorted(script.title() for script in scripts))
        return f"it mixes {names} letters"
    return ""


def skeleton(text: str) -> str:
    """Map each letter to its look-alike (UTS 39): two names with one skeleton cannot be told apart."""
    return "".join(_look_of(letter) for letter in unicodedata.normalize("NFKC", text))


def _look_of(letter: str) -> str:
    looks = _LOOK.get(letter) or _LOOK.get(letter.lower(), letter)
    lowered = looks.lower()
    return lowered if len(lowered) == 1 else looks


def _script_of(letter: str) -> str:
    """The first word of the name; what has no letters of its own counts as none that is allowed."""
    is_phonetic = any(first <= ord(letter) <= last for first, last in _PHONETIC)
    if is_phonetic or not letter.isalpha():
        return ""
    return unicodedata.name(letter, "").partition(" ")[0]
