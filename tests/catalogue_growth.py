"""Hostile catalogues, tables, data and subtitles that have their format, by format and kind."""

from growth import nested, numbered, repeated

HEAD = '<xliff version="1.2"><file source-language="en"><body>'
TAIL = "</body></file></xliff>"
SOURCE, SOURCE_END = f"{HEAD}<trans-unit><source>a ", f"</source></trans-unit>{TAIL}"
CUE = "00:00:01,000 --> 00:00:02,000\n"

CATALOGUE_INPUTS = {
    "po": {
        "wrapped messages": repeated('"one two three four\\n"\n', 'msgid ""\n', 'msgstr ""\n'),
        "wrapped words": repeated('"one two three four five\\n"\n"six\\n"\n', 'msgid ""\n', 'msgstr ""\n'),
        "plurals": numbered('msgid "a {}"\nmsgid_plural "b c"\nmsgstr[0] ""\nmsgstr[1] ""\n', "\n"),
        "comments of PO": repeated("# a\n", "", 'msgid "a b"\nmsgstr ""\n'),
        "flags of PO": repeated("#, fuzzy\n", "", 'msgid "a b"\nmsgstr ""\n'),
        "fields of a header": repeated('"A: b\\n"\n', 'msgid ""\nmsgstr ""\n', 'msgid "a b"\nmsgstr ""\n'),
        "contexts": repeated('msgctxt "a"\n"b"\n'),
        "directives": repeated("%1$ *", '#, c-format\nmsgid "a ', '"\nmsgstr ""\n'),
        "underscores": repeated("_A ", 'msgid "', '"\nmsgstr ""\n'),
        "ampersands": repeated("&a ", 'msgid "', '"\nmsgstr ""\n'),
        "line feeds": repeated("\\n", 'msgid "a', 'b"\nmsgstr ""\n'),
    },
    "xliff": {
        "units of XLIFF": repeated("<trans-unit><source>a b</source></trans-unit>", HEAD, TAIL),
        "segments of version 2": repeated("<segment><source>a b</source></segment>", "<xliff>", "</xliff>"),
        "pairs of codes": repeated('<bpt id="1">a</bpt>b <ept id="1">c</ept>', SOURCE, SOURCE_END),
        "codes that do not end": repeated('<bpt id="1">a</bpt>b ', SOURCE, SOURCE_END),
        "ends of codes": repeated('b <ept id="1">a</ept>', SOURCE, SOURCE_END),
        "protected words": repeated('<mrk mtype="protected">a</mrk> b ', SOURCE, SOURCE_END),
        "CDATA sections": repeated("<![CDATA[a b]]> ", SOURCE, SOURCE_END),
        "divided sources": repeated(
            '<mrk mtype="seg" mid="1">a b</mrk> ',
            f"{HEAD}<trans-unit><source>a</source><seg-source>", f"</seg-source></trans-unit>{TAIL}",
        ),
        "notes of XLIFF": nested("<note>", "</note>", "a"),
    },
    "srt": {
        "a long cue": repeated("ab ", CUE),
        "a long Chinese cue": repeated("我", CUE),
        "a cue of tags": repeated("<i>a</i>", CUE),
        "lines of a cue": repeated("ab cd\n", CUE),
        "paragraphs in a cue": repeated("ab\n\n", CUE),
        "voices": repeated("<v A>b\n", CUE),
        "numbers in a cue": repeated("1\n", CUE),
        "cues without numbers": repeated(f"{CUE}a b\n"),
    },
    "json": {
        "a long key": repeated("a.", '{"', '": "a b"}'),
        "objects": nested('{"a": ', "}", '"a b"'),
        "escaped slashes": repeated("a \\/ ", '["', '"]'),
        "hyphens": repeated("a-1", '["', '"]'),
        "stars in a path": repeated("a*/", '["', '"]'),
    },
    "yaml": {
        "wrapped lines of a block": repeated("  one two three four\n", "a: |\n"),
        "anchors": numbered("- &a{} a b", "\n"),
        "tags of YAML": repeated("- !a b\n"),
        "comments of YAML": repeated("# a\n", "", "en:\n  a: b c\n"),
        "quoted lines": repeated("  b c\n", "a: '", "'\n"),
    },
    "csv": {
        "rows with a header": repeated("a b,c d\n", "e,f\n"),
        "a long quoted cell": repeated('a ""b"" ', 'x,y\n"', '",c\n'),
        "a first line of quotes": repeated('"a",', "", "\nb c\n"),
        "formulas": repeated("=A(", "x\n", "\n"),
    },
}  # fmt: skip
CATALOGUE_INPUTS["vtt"] = {
    f"{kind} of WebVTT": lambda size, make=make: "WEBVTT\n\n" + make(size)
    for kind, make in CATALOGUE_INPUTS["srt"].items()
}
CATALOGUE_QUICK = {
    "po": ["wrapped messages", "plurals", "comments of PO", "fields of a header"],
    "xliff": ["units of XLIFF", "pairs of codes", "codes that do not end", "divided sources"],
    "srt": ["a long cue", "a long Chinese cue", "paragraphs in a cue", "cues without numbers"],
    "vtt": ["lines of a cue of WebVTT"],
    "json": ["a long key", "hyphens"],
    "yaml": ["wrapped lines of a block", "anchors"],
    "csv": ["rows with a header", "a first line of quotes"],
}
