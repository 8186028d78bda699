"""The rules of plain English that a program can check, each with what to write instead.

A rule is a pattern that must not occur. Rules look at prose: code between backticks, addresses, and quoted examples are
taken out before (`sources.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """Kind of a text; each rule holds for some kinds."""

    PAGE = auto()
    """Prose of a document, a notebook, a template or a demo."""
    MESSAGE = auto()
    """A string of the program: help, option, error, hint, log line, report."""
    DOCSTRING = auto()
    COMMENT = auto()


READ_BY_USERS = frozenset({Kind.PAGE, Kind.MESSAGE})
EVERYWHERE = frozenset(Kind)


@dataclass(frozen=True)
class Rule:
    name: str
    pattern: re.Pattern[str]
    instead: str
    kinds: frozenset[Kind] = EVERYWHERE

    def findings(self, text: str) -> Iterator[str]:
        for match in self.pattern.finditer(text):
            yield f"{match[0].strip()!r}: {self.instead}"


def _words(*words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'\u2019.-])(?:{'|'.join(words)})(?![\w'\u2019-])", re.IGNORECASE)


RULES = (
    # Words of another language in English dress.
    Rule("alone", _words("alone"), 'write "only", "by itself", or name what else takes part'),
    Rule("beside", _words("besides?"), 'write "next to" or "in addition to"'),
    Rule("anew", _words("anew"), 'write "again"'),
    Rule("hang on", _words("hangs? on", "hung on"), 'write "depends on"'),
    Rule(
        "more",
        re.compile(
            r"\b(?:one|two|three|four|\d+) (?!or )\w+(?: (?!or )\w+)? (?<!reveals )(?<!learns )more\b"
            r"(?! than| at| or| of)(?=[.,;:)]|$)",
            re.I,
        ),
        'write "one more noisy sum"',
    ),
    Rule(
        "none",
        re.compile(r"(?<!there )(?<!There )\b(?:is|are|was|were) (?:none|no (?!longer|more)\w+)(?= ?[.,;:)]|$)"),
        'write "is not a valid date", "it has no rows"',
    ),
    Rule("in no form", _words("in no form", "in no way", "in so many words"), 'write "in any form"'),
    Rule(
        "participle first",
        re.compile(
            r"(?:^|[.:;] )(?:Shown|Counted|Meant|Sent|Kept|Left out|Named|Given|Asked|Said|Told) (?:is|are|was|were)\b"
        ),
        "put the subject first",
    ),
    # Persons.
    Rule(
        "headless who",
        _words("whoever", "whomever", "whatever", "one who", "ones who", "those who", "those that"),
        'write "anyone who", "a party that", "the operator"',
    ),
    Rule(
        "who asks",
        re.compile(
            r"(?:(?:^|[.:;(] ?)Who|\b(?:to|by|for|of|from|with) who) (?!can |may |is |has |takes part)\w+s\b"
            r"(?! what| whom|[^.]*\?)"
        ),
        'name the person: "a party that asks"',
    ),
    Rule(
        "he or she",
        re.compile(r"(?<![\w'-])(?:[Hh]e|[Ss]he|[Hh]is|[Hh]ers?|[Hh]im|[Hh]imself|[Hh]erself)(?![\w'-])"),
        "name the person or the party",
    ),
    # Exact verbs.
    Rule(
        "tell",
        _words("tells?", "told", "telling"),
        "write the exact verb: reveal, print, report, declare, inform, distinguish",
    ),
    Rule(
        "say",
        _words("says?", "said", "saying"),
        "write the exact verb: state, print, report, declare, specify, answer",
        READ_BY_USERS,
    ),
    # Internal words.
    Rule(
        "internal",
        _words("seats?", "rooms?", "floors?", "waves?", "desks?", "in so many words"),
        "an internal word: name the process, file, round or step",
        READ_BY_USERS,
    ),
    Rule("up", _words(r"(?:is|are|was|were|be|already) up(?! to\b)"), 'write "is running"', READ_BY_USERS),
    # One word for one idea.
    Rule(
        "role",
        _words("askers?", "consumers?", "label holders?", "feature holders?", "notary", "notaries"),
        "use the glossary's word: active party, passive party, measurement server, key node",
    ),
    # Numbers.
    Rule("leading zero", re.compile(r"(?<![\w.)/\]])\.\d+(?!\w)"), "write 0.05"),
    Rule("percent", re.compile(r"\d %(?!\w)"), "write 99%"),
    Rule("microseconds", re.compile(r"\d us\b"), "write µs"),
    Rule(
        "thousands",
        re.compile(r"(?<![\w.,:/#=+*-])[1-9]\d{4,}(?![\w.,/:*-]|\.\d)"),
        "write 10,000",
        frozenset({Kind.PAGE}),
    ),
    Rule("range", re.compile(r"\d ?[\u2013\u2014] ?\d"), 'write "0.1 to 0.3"'),
    Rule("the spec", _words("the spec"), "name the paper, or the page", READ_BY_USERS),
)

OPENERS = (
    *("of", "by", "at", "as", "which", "what", "whether", "who", "whom", "whose", "that", "where", "how", "why"),
    *("than", "none", "not", "it", "its", "those", "so", "such", "and", "or", "but", "too", "else"),
)
"""A description must not open with one of these words: it opens with a verb, or with the noun that it describes."""

LONGEST_SENTENCE = {Kind.PAGE: 35, Kind.MESSAGE: 35, Kind.DOCSTRING: 40, Kind.COMMENT: 40}


def opener_of(text: str) -> str | None:
    """Return the word that a description must not open with; None where it opens well."""
    first = re.match(r"[A-Za-z]+", text.lstrip("*_\"'("))
    return first[0] if first is not None and first[0].lower() in OPENERS else None


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a paragraph."""
    return [one for one in re.split(r"(?<=[.!?:;])[\"')*_]*\s+(?=[\"'(*_`]*[A-Z0-9X]|[\"'])", text) if one.strip()]


def long_sentences_of(text: str, kind: Kind) -> Iterator[str]:
    """Yield each sentence that has more words than its kind of text may have."""
    for sentence in sentences_of(text):
        words = [word for word in sentence.split() if re.search(r"\w", word)]
        if len(words) > LONGEST_SENTENCE[kind]:
            yield f"{' '.join(words[:8])} ...: {len(words)} words; split it"


def findings_of(text: str, kind: Kind) -> Iterator[str]:
    """Yield what a text breaks of the rules, in words."""
    for rule in RULES:
        if kind in rule.kinds:
            for finding in rule.findings(text):
                yield f"{rule.name}: {finding}"
    yield from (f"long: {finding}" for finding in long_sentences_of(text, kind))
