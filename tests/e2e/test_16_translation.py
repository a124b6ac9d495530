"""README.zh-CN.md says what README.md says: the same sections, commands, pictures, links and figures.

Chinese orders a sentence in another way, so within a section (from one heading to the next) what is compared is how often
each thing occurs. In code blocks the words of comments may differ, nothing else.
"""
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGLISH, CHINESE = "README.md", "README.zh-CN.md"

HEADING = re.compile(r"(#{1,6}) (.*)")
FENCE = re.compile(r"```(\w*)")
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)", re.S)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", re.S)
COMMENT = re.compile(r"(^|\s)(#|//)\s.*$")


class Section:
    def __init__(self, level, title, line):
        self.level, self.title, self.line = level, title, line
        self.prose, self.blocks = [], []  # Lines; (language, lines).

    @property
    def text(self):
        return "\n".join(self.prose)


def slug(title):
    """The anchor that GitHub, and the guide, give a heading."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def sections_of(text):
    sections, block = [Section(0, "(before the first heading)", 1)], None
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.match(line.strip())
        if block is not None:
            if fence:
                block = None
            else:
                block.append(line)
        elif fence:
            block = []
            sections[-1].blocks.append((fence[1], block))
        elif heading := HEADING.match(line):
            sections.append(Section(len(heading[1]), heading[2], number))
        else:
            sections[-1].prose.append(line)
    return sections


def links_of(section, anchors):
    """Targets; one within the document as the number of the heading it leads to."""
    found = Counter()
    for target in LINK.findall(section.text):
        if target.startswith("#"):
            place = anchors.index(target[1:]) if target[1:] in anchors else None
            found[f"heading {place}" if place is not None else f"no such heading: {target}"] += 1
        elif target not in (ENGLISH, CHINESE):  # Each names the other.
            found[target] += 1
    return found


def figures_of(section):
    text = re.sub(r"`[^`]*`", " ", section.text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return Counter(re.findall(r"\d+(?:[.,]\d+)*", text))


def features_of(section, anchors):
    rows = [line for line in section.prose if line.startswith("|")]
    return {
        "pictures": Counter(PICTURE.findall(section.text)),
        "links": links_of(section, anchors),
        "code in the text": Counter(re.findall(r"`([^`]+)`", re.sub(r"\s+", " ", section.text))),
        "figures": figures_of(section),
        "points of lists": Counter({"points": sum(bool(re.match(r"\s*([-*]|\d+\.) ", line)) for line in section.prose)}),
        "rows of tables": Counter({"rows": len(rows)}),
    }


def code_differences(where, english, chinese):
    """What differs between two lists of code blocks, but for the words of comments."""
    if len(english) != len(chinese):
        yield f"{where}: {len(english)} code blocks in {ENGLISH}, {len(chinese)} in {CHINESE}"
        return
    for number, ((language, lines), (other_language, other_lines)) in enumerate(zip(english, chinese), 1):
        place = f"{where}, code block {number}"
        if language != other_language:
            yield f"{place}: marked '{language}' in {ENGLISH}, '{other_language}' in {CHINESE}"
        if len(lines) != len(other_lines):
            yield f"{place}: {len(lines)} lines in {ENGLISH}, {len(other_lines)} in {CHINESE}"
        for line, other in zip(lines, other_lines):
            if COMMENT.sub(r"\1\2", line).rstrip() != COMMENT.sub(r"\1\2", other).rstrip():
                yield f"{place}:\n    {ENGLISH}:       {line}\n    {CHINESE}: {other}"


def differences(english_text, chinese_text):
    english, chinese = sections_of(english_text), sections_of(chinese_text)
    for one, other in zip(english, chinese):
        if one.level != other.level:
            yield (f"headings: '{'#' * one.level} {one.title}' (line {one.line} of {ENGLISH}) stands where "
                   f"'{'#' * other.level} {other.title}' (line {other.line} of {CHINESE}) does")
            return
    if len(english) != len(chinese):
        longer, name = (english, ENGLISH) if len(english) > len(chinese) else (chinese, CHINESE)
        extra = longer[min(len(english), len(chinese))]
        yield f"headings: {len(english) - 1} in {ENGLISH}, {len(chinese) - 1} in {CHINESE}; from '{extra.title}' of {name} on"
        return
    anchors = [[slug(section.title) for section in document] for document in (english, chinese)]
    for one, other in zip(english, chinese):
        where = f"section '{one.title}' / '{other.title}' (line {one.line} of {ENGLISH}, {other.line} of {CHINESE})"
        ours, theirs = features_of(one, anchors[0]), features_of(other, anchors[1])
        for feature, counted in ours.items():
            for name, more in ((ENGLISH, counted - theirs[feature]), (CHINESE, theirs[feature] - counted)):
                if more:
                    yield f"{where}: {feature} only in {name}: {', '.join(f'{thing} ({n}x)' for thing, n in more.items())}"
        yield from code_differences(where, one.blocks, other.blocks)


@pytest.fixture(scope="module")
def texts():
    return (ROOT / ENGLISH).read_text(), (ROOT / CHINESE).read_text()


def test_both_say_the_same(texts):
    found = list(differences(*texts))
    assert not found, f"{CHINESE} and {ENGLISH} are not in step:\n  " + "\n  ".join(found)


def test_each_names_the_other(texts):
    assert f"]({CHINESE})" in texts[0] and f"]({ENGLISH})" in texts[1]


def test_it_is_chinese(texts):
    """A section that was added in English only copied is not translated."""
    for section in sections_of(texts[1])[1:]:
        if section.level > 1:
            assert re.search(r"[\u4e00-\u9fff]", section.title), f"line {section.line}: '{section.title}' is not translated"
        words = re.sub(r"`[^`]*`|\]\([^)]*\)|\*[^*]+\*", "", section.text)
        if len(words.strip()) > 40:
            assert re.search(r"[\u4e00-\u9fff]{2}", words), f"section '{section.title}' is not translated"


# What one forgets, done to the Chinese text, and what the message must then say.
FORGOTTEN = [
    ("a figure", lambda text: text.replace("1.02", "1.20", 1), "figures only in README.zh-CN.md: 1.20"),
    ("a command", lambda text: text.replace("ringshift resize pause\n", "", 1), "lines in README.md"),
    ("a flag", lambda text: text.replace("--seconds 5 ", "--seconds 6 ", 1), "--seconds 6"),
    ("a picture", lambda text: text.replace("(docs/growth.svg)", "(docs/other.svg)", 1), "pictures only in README.md: docs/growth.svg"),
    ("a link", lambda text: text.replace("](docs/tls.md)", "](docs/spec.md)", 1), "links only in README.md: docs/tls.md"),
    ("a heading", lambda text: re.sub(r"\n### [^\n]*\n", "\n", text, count=1), "headings:"),
    ("a heading's level", lambda text: text.replace("\n### ", "\n#### ", 1), "headings:"),
    ("a point of a list", lambda text: re.sub(r"\n- [^\n]*\n(?=\n)", "\n", text, count=1), "points of lists"),
    ("a row", lambda text: re.sub(r"\n\| [^\n]*\n(?=\n)", "\n", text, count=1), "rows of tables"),
    ("an anchor", lambda text: re.sub(r"\]\(#[^)]+\)", "](#nowhere)", text, count=1), "no such heading: #nowhere"),
]


@pytest.mark.parametrize("change, message", [case[1:] for case in FORGOTTEN], ids=[case[0] for case in FORGOTTEN])
def test_what_is_forgotten_is_named(texts, change, message):
    changed = change(texts[1])
    assert changed != texts[1], "the example is gone from the text: choose another"
    assert message in "\n".join(differences(texts[0], changed))


def test_words_of_comments_may_differ():
    block = "# T\n\n```sh\nmake up  # {}\n```\n"
    assert not list(differences(block.format("one"), block.format("两")))
    assert list(differences(block.format("one"), block.format("one").replace("make up", "make all")))
