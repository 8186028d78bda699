"""Score the rows of csv files by a model, or by the parties' parts of one. Python is all that this file needs.

    python scorer.py MODEL.json ROWS.csv MODEL.json ROWS.csv ... > scores.csv

Name one pair for each party of a vertical model, in any order, or one pair for another linear model. The id is the
column `id`, or another one: --id NAME. Columns are found by name, and converted as the model's record of them
describes; other columns are ignored. A row is scored if every file has its id. A level that training did not meet is
reported; with --refuse-unseen it is refused. docs/reference/file_formats.md describes the
steps, and docs/reference/columns.md the conversions. The bits are those of a joint prediction.

A file in another dialect than UTF-8, commas, 1234.5 and 2024-05-31 needs the options of its dataset, such as
--separator ";" --decimal ",". An option that is given once counts for all files. An option that is given once for each
file counts for the files in their order.
"""

import argparse
import collections
import csv
import datetime as dt
import json
import math
import pathlib
import re
import sys
import unicodedata

FORMAT = "blindfit vertical model part v1"
WHOLE_MODELS = {  # what each predicts
    "blindfit-walr-model-1": "probability",
    "blindfit-dp-logistic-1": "probability",
    "blindfit label regression v1": "value",
}
NOTHING = "nothing was charged, nothing may be released from it"  # of a model that was rehearsed
MISSING_WORDS = ["NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "<NA>", "NaN", "nan"]
DAY_US = 86_400_000_000
LARGEST = 1e100  # of a recipe's result, and of what a dp-lr model scales
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([01][0-9]|2[0-3])(?::([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,9}))?)?)?"
    r"(Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)?)?"
)
PLAIN = {"separator": ",", "decimal": ".", "thousands": "", "encoding": "utf-8", "date_format": ""}
ALIKE = {" ": " \u00a0\u202f", "'": "'\u2019"}  # what stands in the place of a thousands separator
DATE_PARTS = {  # directive -> (name, pattern next to a character, pattern next to a number)
    "d": ("day", "[0-9]{1,2}", "[0-9]{2}"),
    "m": ("month", "[0-9]{1,2}", "[0-9]{2}"),
    "b": ("name", "[A-Za-z]{3}", "[A-Za-z]{3}"),
    "B": ("name", "[A-Za-z]{3,9}", "[A-Za-z]{3,9}"),
    "Y": ("year", "[0-9]{4}", "[0-9]{4}"),
    "y": ("short", "[0-9]{2}", "[0-9]{2}"),
    "H": ("hour", "[0-9]{1,2}", "[0-9]{2}"),
    "I": ("half", "[0-9]{1,2}", "[0-9]{2}"),
    "p": ("noon", "[AaPp][Mm]", "[AaPp][Mm]"),
    "M": ("minute", "[0-9]{2}", "[0-9]{2}"),
    "S": ("second", "[0-9]{2}", "[0-9]{2}"),
    "f": ("fraction", "[0-9]{1,6}", "[0-9]{6}"),
}
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November"]
MONTHS.append("December")
UNSEEN = re.compile(  # control characters that are not white space, and what Unicode calls ignorable
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


# --- the arithmetic ---------------------------------------------------------------------------------


def score_part(model, row, unseen=None):
    """Return this party's part of the score, in steps of 2^-42, of {column: text, or None for no value}.

    `unseen` counts levels that training did not meet, by (column, level).
    """
    grid, bound = model["grid"], model["feature_bound"]
    columns, weights = standardised(model, row, unseen)
    steps = [round(max(-bound, min(bound, x)) * 2.0 ** grid["feature_bits"]) for x in columns]
    if model["row_bound"] is not None:
        steps = shortened(steps, model["row_bound"])
    part = sum(x * round(w * 2.0 ** grid["weight_bits"]) for x, w in zip(steps, weights, strict=True))
    rounding = model["score_rounding"]
    return (part + (1 << rounding >> 1)) >> rounding << rounding


def score_whole(model, row, unseen=None):
    """Return the score of a whole model, of {column: text, or None for no value}."""
    columns, weights = standardised(model, row, unseen)
    if model["format"] == "blindfit-dp-logistic-1":
        columns = [max(-LARGEST, min(LARGEST, x)) for x in columns]
    elif not all(map(math.isfinite, columns)):
        raise ValueError("a value is too far from the mean of its column")
    if "norm_bound" in model and (norm := math.hypot(*columns)) > model["norm_bound"]:
        columns = [x * (model["norm_bound"] / norm) for x in columns]
    return sum(x * w for x, w in zip(columns, weights, strict=True))


def standardised(model, row, unseen):
    """Return the numbers that have a weight, and the weights. The constant 1 comes last, if it exists."""
    scaling, values = scaling_of(model), {}
    for column in record(model)["columns"]:
        values.update(converted(column, row[column["name"]], record(model)["fill"], unseen))
    for recipe in record(model).get("recipes", []):
        values.update(derived(recipe, *(values[name] for name in recipe["of"])))
    names = list(model["weights"])
    columns = [(values[name] - scaling["mean"][name]) / scaling["std"][name] for name in names]
    weights = [model["weights"][name] for name in names]
    if model.get("intercept") is not None:
        columns, weights = [*columns, 1.0], [*weights, model["intercept"]]
    return columns, weights


def shortened(steps, most):
    """Scale a row that is longer than `most` steps to that length, and cut it toward zero."""
    square = sum(x * x for x in steps)
    if square <= most * most:
        return steps
    length = math.isqrt(square) + 1
    return [(abs(x) * most // length) * (1 if x > 0 else -1) for x in steps]


def prediction(active, score):
    """Return the real score, and the probability or value, of the sum of all parts."""
    real = real_score(active, score)
    if active["model"] == "linear":
        return real, real * active["label_scale"] + active["label_mean"]
    return real, sigmoid(real * active["slope"] + active["offset"])


def real_score(model, score):
    return math.ldexp(score, -model["grid"]["feature_bits"] - model["grid"]["weight_bits"])


def sigmoid(odds):
    """Return the probability of log odds."""
    return 1.0 / (1.0 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1.0 + math.exp(odds))


def score_of(model, row, unseen=None):
    """Return the score, or a part of it in steps of 2^-42, of {column: text, or None for no value}."""
    return (score_whole if model["format"] in WHOLE_MODELS else score_part)(model, row, unseen)


def outcome(models, scores):
    """Return {name: number} of a row.

    The models are all parts or one, the active party's first; the scores are those of `score_of` for each.
    """
    active, total = models[0], sum(scores)
    if predicts := WHOLE_MODELS.get(active["format"]):
        return {"score": total, predicts: sigmoid(total) if predicts == "probability" else total}
    score, predicted = prediction(active, total) if active["role"] == "active" else (real_score(active, total), None)
    if len(models) < len(active["data_parties"]):
        return {"score_part": score}
    return {"score": score, "value" if active["model"] == "linear" else "probability": predicted}


# --- the conversions --------------------------------------------------------------------------------


def scaling_of(model):
    return model["scale"] if "scale" in model else model["standardiser"]


def record(model):
    """Return the source of each of the model's columns; a model without a record reads numbers under their names."""
    scaling = scaling_of(model)
    numbers = [{"name": name, "kind": "number", "missing": "refuse"} for name in scaling["columns"]]
    return scaling.get("table") or {"columns": numbers, "fill": {}, "missing_words": MISSING_WORDS}


def converted(column, text, fill, unseen=None):
    """Return {the model's column: a number} of a value of the table."""
    name, is_category = column["name"], column["kind"] == "category"
    valued = [f"{name}={level}" for level in column["levels"]] if is_category else [name]
    convert = {"category": level_of, "date": days, "boolean": truth, "number": number}[column["kind"]]
    value = None if text is None else convert(text, name)
    indicator = {f"{name}=": float(value is None)} if column["missing"] == "indicator" else {}
    if value is None:
        if column["missing"] == "refuse":
            raise ValueError(f"column {name}: the value is missing")
        return {made: 0.0 if is_category and indicator else fill[made] for made in valued} | indicator
    if not is_category:
        return {name: value} | indicator
    if unseen is not None and value not in (known := {*chosen(column), *(column["reference"] or [])}):
        unseen[name, value, next((one for one in known if loosely(one) == loosely(value)), "")] += 1
    return {made: float(made == f"{name}={value}") for made in valued} | indicator


def chosen(column):
    """Return the levels of a category that have a column, and its reference level."""
    return [*column["levels"], *([column["base"]] if "base" in column else [])]


def derived(recipe, x, y=None):
    """Return the columns of a recipe: {the model's column: a number}. The order of the steps decides the last bits."""
    name, by = recipe["name"], recipe["by"]
    if by == "log1p":
        if x <= -1:
            raise ValueError(f"column {recipe['of'][0]}: the number is not above -1, and {name} is its log1p")
        return {name: math.log1p(x)}
    if by == "clip":
        low, high = (-LARGEST if recipe["low"] is None else recipe["low"]), recipe["high"]
        return {name: min(max(x, low), LARGEST if high is None else high)}
    if by == "product":
        return {name: cut(x * y)}
    if by == "bins":
        below = sum(edge < x for edge in recipe["edges"])
        return {f"{name}={b + 1}": float(below == b) for b in range(1, len(recipe["edges"]) + 1)}
    if by != "spline":
        raise ValueError(f"{name} is computed by {by}, which this scorer does not know")
    knots, made = recipe["knots"], [0.0] * recipe["columns"]
    if len(knots) > 1:
        width, last = knots[-1] - knots[0], len(knots) - 2
        place = [(knot - knots[0]) / width for knot in knots]
        made[0] = cut((x - knots[0]) / width)
        inside, beyond = min(made[0], 1.0), max(made[0] - 1.0, 0.0)
        above = [max(inside - at, 0.0) for at in place[:-1]]
        cubic = [a * a * a / (1.0 - at) for a, at in zip(above, place, strict=False)]
        for j in range(last):
            made[j + 1] = cut((cubic[j] - cubic[last]) + 3.0 * beyond * (place[last] - place[j]))
    return {f"{name}={j}": number for j, number in enumerate(made, 1)}


def cut(number):
    return max(-LARGEST, min(LARGEST, number))


def number(text, name):
    text = text.strip()
    if not text or text.lower() in ("nan", "+nan", "-nan"):
        return None
    if text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    if not NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise ValueError(f"column {name}: not a finite number")
    return float(text)


def truth(text, name):
    found = number(text, name)
    if found not in (None, 0.0, 1.0):
        raise ValueError(f"column {name}: neither true nor false")
    return found


def days(text, name):
    """Return the days since 1970-01-01 in UTC, cut to µs. A moment without a zone counts as UTC."""
    text = text.strip()
    if not text:
        return None
    found = MOMENT.fullmatch(text)
    try:
        date = dt.date.fromisoformat(found[1]) if found else None
    except ValueError:  # the 30th of February
        date = None
    if date is None:
        raise ValueError(f"column {name}: not a date")
    hour, minute, second = (int(digits or 0) for digits in found.group(2, 3, 4))
    moment = (date.toordinal() - 719_163) * DAY_US + ((hour * 60 + minute) * 60 + second) * 1_000_000
    moment += int((found[5] or "").ljust(6, "0")[:6])
    zone = (found[6] or "Z").replace(":", "").replace("Z", "+00")
    moment -= int(zone[0] + "1") * (int(zone[1:3]) * 60 + int(zone[3:] or 0)) * 60_000_000
    if not -719_162 * DAY_US <= moment < 2_932_897 * DAY_US:
        raise ValueError(f"column {name}: the date is outside the years 1 to 9999")
    return float(moment) / float(DAY_US)


def level_of(text, _name):
    return one_spelling(text) or None


def one_spelling(text):
    """Return the text that stands for all that look like it: docs/reference/columns.md."""
    return unicodedata.normalize("NFC", UNSEEN.sub("", text)).strip()


def loosely(text):
    """Return the same text for two levels that differ only in case, spaces, or the spelling of a number."""
    text = "".join(text.casefold().split())
    try:
        return repr(float(text))
    except ValueError:
        return text


# --- other forms of numbers and dates -----------------------------------------------------------------


def in_plain_form(model, row, form):
    """Return the same row with its numbers as 1234.5 and its dates as 2024-05-31."""
    writers = {"number": plain_number, "boolean": plain_number, "date": plain_date}
    return row | {
        column["name"]: writers[column["kind"]](row[column["name"]], column["name"], form)
        for column in record(model)["columns"]
        if column["kind"] in writers and row[column["name"]] is not None
    }


def plain_number(text, name, form):
    decimal, thousands = form["decimal"], form["thousands"]
    if (decimal, thousands) == (".", "") or not re.search("[0-9]", text):
        return text
    group = f"[{re.escape(ALIKE.get(thousands, thousands))}]" if thousands else ""
    whole = f"(?:[1-9][0-9]{{0,2}}(?:{group}[0-9]{{3}})+|[0-9]+)" if thousands else "[0-9]+"
    point = re.escape(decimal)
    pattern = rf"[+-]?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    if not re.fullmatch(pattern, text.strip()):
        raise ValueError(f"column {name}: not a number in the form 1{thousands}234{decimal}5")
    return (re.sub(group, "", text.strip()) if group else text.strip()).replace(decimal, ".")


def plain_date(text, name, form):
    found = form["date_format"] and re.fullmatch(date_pattern(form["date_format"]), text.strip())
    if not form["date_format"] or not text.strip():
        return text
    part = found.groupdict() if found else {}
    months = [month.lower() for month in MONTHS] + [month[:3].lower() for month in MONTHS]
    named = part.get("name", "january").lower()
    half = int(part.get("half", "12"))
    if not found or named not in months or not 1 <= half <= 12:
        raise ValueError(f"column {name}: not a date in the form {form['date_format']}")
    month = part.get("month") or str(months.index(named) % 12 + 1)
    year = part.get("year") or ("19" if int(part["short"]) >= 69 else "20") + part["short"]
    date = f"{year}-{month.zfill(2)}-{part['day'].zfill(2)}"
    if not part.keys() & {"hour", "half"}:
        return date
    hour = part.get("hour") or str(half % 12 + 12 * (part["noon"].lower() == "pm"))
    clock = f"{hour.zfill(2)}:{part.get('minute', '00')}:{part.get('second', '00')}"
    return f"{date}T{clock}" + (f".{part['fraction']}" if "fraction" in part else "")


def date_pattern(date_format):
    """Return the pattern of texts in this form, with a group for each part."""
    parts, pattern = re.findall(r"%(.?)|([^%]+)", date_format, re.DOTALL), ""
    for place, (letter, text) in enumerate(parts):
        if text or letter == "%":
            pattern += re.escape(text or "%")
            continue
        if letter not in DATE_PARTS:
            raise ValueError(f"--date-format: %{letter} is not supported")
        name, loose, fixed = DATE_PARTS[letter]
        near = [parts[one][0] for one in (place - 1, place + 1) if 0 <= one < len(parts)]
        pattern += f"(?P<{name}>{fixed if any(one in 'dmYyHIMSf' for one in near if one) else loose})"
    return pattern


def add_options_of_forms(parser):
    parser.add_argument("--separator", action="append", metavar="CHARACTER", help='between fields: ";" or "\\t"')
    parser.add_argument("--decimal", action="append", choices=[".", ","], help="before the fraction of a number")
    parser.add_argument("--thousands", action="append", choices=["", ".", ",", " ", "'"], help="between three digits")
    parser.add_argument("--encoding", action="append", choices=["utf-8", "utf-16", "latin-1", "cp1252"])
    parser.add_argument("--date-format", action="append", metavar="FORM", help='such as "%%d.%%m.%%Y"')


def forms_of(asked, n_files):
    """Return the dialect of each file."""
    forms = [dict(PLAIN) for _ in range(n_files)]
    for option in PLAIN:
        given = getattr(asked, option) or [PLAIN[option]]
        if len(given) not in (1, n_files):
            raise ValueError(f"--{option.replace('_', '-')}: give it once, or once for each of the {n_files} files")
        for form, value in zip(forms, given * n_files if len(given) == 1 else given, strict=True):
            form[option] = "\t" if (option, value) == ("separator", "\\t") else value
    for form in forms:
        if len(form["separator"]) != 1 or not form["separator"].isascii() or form["separator"] in '"\r\n':
            raise ValueError(f"--separator {form['separator']!a} is not one character that can stand between fields")
        if form["decimal"] == form["thousands"]:
            raise ValueError("--decimal and --thousands are the same character")
    return forms


# --- the tables -------------------------------------------------------------------------------------


def write(paths, models, tables, forms, *, refuses_unseen):
    """Write the scores of the rows that every table has, as a csv file on standard output."""
    common = [row for row in tables[0] if all(row in rows for rows in tables)]
    scores = [[] for _ in common]
    stamp = [NOTHING] if any(model.get("rehearsal") for model in models) else []
    if stamp:
        print(f"warning: the model comes from a rehearsal: {NOTHING}", file=sys.stderr)
    for path, model, rows, form in zip(paths, models, tables, forms, strict=True):
        unseen = collections.Counter()
        for place, row in enumerate(common):
            try:
                scores[place].append(score_of(model, in_plain_form(model, rows[row], form), unseen))
            except ValueError as error:
                raise ValueError(f"{path}, the row with the id {row!a}, {error}") from None
        tell(path, unseen, refuses_unseen)
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["id", *outcome(models, [0] * len(models)), *["rehearsal" for _ in stamp]])
    table.writerows([row, *outcome(models, parts).values(), *stamp] for row, parts in zip(common, scores, strict=True))


def tell(path, unseen, refuses):
    """Print one line on standard error for each level that training did not meet."""
    for (column, value, near), rows in unseen.items():
        spelling = f", which differs from {near!a} only in spelling" if near else ""
        of = "1 row" if rows == 1 else f"{rows} rows"
        problem = f"{path}, column {column}: training did not meet the level {value!a} of {of}{spelling}"
        if refuses:
            raise ValueError(problem)
        print(f"warning: {problem}: it is scored as 0 in each of its columns", file=sys.stderr)


def read(path, id_column, model, form, names=None):
    """Return {id: {column: text, or None for no value}} of the columns that the model reads, in the order of the file.

    `names` says what the file calls a column, where that is not the model's name of it.
    """
    encoding = "utf-8-sig" if form["encoding"] == "utf-8" else form["encoding"]
    with open(path, encoding=encoding, newline="") as file:
        records = fields_of(file.read(), path, form["separator"])
    header = [text for text, _ in next(records, [])]
    columns = record(model)["columns"]
    declared = {column["name"]: chosen(column) for column in columns if column.get("declared")}
    wanted = {None: id_column} | {
        column["name"]: (names or {}).get(column["name"], column["name"]) for column in columns
    }
    if missing := [name for name in wanted.values() if name not in header]:
        raise ValueError(f"{path} has no column {', '.join(missing)}")
    if twice := [name for name in wanted.values() if header.count(name) > 1]:
        raise ValueError(f"{path} has the column {', '.join(twice)} twice")
    places = {name: header.index(of_file) for name, of_file in wanted.items()}
    words, rows = set(record(model)["missing_words"]), {}
    for fields in records:
        if len(fields) != len(header):
            more = "more" if len(fields) > len(header) else "fewer"
            raise ValueError(f"{path} has a row with {more} values than there are columns")
        row = {}
        for name, place in places.items():
            text, quoted = fields[place]
            is_word = not quoted and text.strip() in words and text.strip() not in declared.get(name, [])
            row[name] = None if is_word or not text.strip() else text
        key = one_spelling(row.pop(None) or "")
        if not key:
            raise ValueError(f"{path} has a row without an id")
        if key in rows:
            raise ValueError(f"{path} has an id twice")
        rows[key] = row
    return rows


def fields_of(text, path, separator):
    """Yield the records of a csv file without its empty lines: lists of (text, True if it stands in double quotes)."""
    rest = rf"[^{re.escape(separator)}\r\n]*"
    field = re.compile(rf'"([^"]*(?:""[^"]*)*)"({rest})|({rest})')
    text, position, fields = text if text.endswith(("\n", "\r")) else text + "\n", 0, []
    while position < len(text):
        found = field.match(text, position)
        quoted = found[1] is not None
        if not quoted and found[0].startswith('"'):
            raise ValueError(f"{path} has a double quote that is left open")
        fields.append((found[1].replace('""', '"') + found[2] if quoted else found[0], quoted))
        position = found.end() + 1
        if text[position - 1] == separator:
            continue
        position += text[position - 1 : position + 1] == "\r\n"
        if fields != [("", False)]:
            yield fields
        fields = []


# --- the command ------------------------------------------------------------------------------------


def main(arguments):
    parser = argparse.ArgumentParser(description="Score rows by the parts of one model, one of each party.")
    parser.add_argument("--id", default="id", metavar="COLUMN", help="the column that names a row")
    parser.add_argument("--refuse-unseen", action="store_true", help="refuse a level that training did not meet")
    add_options_of_forms(parser)
    parser.add_argument("files", nargs="+", metavar="MODEL ROWS", help="a part of the model (json), and its rows (csv)")
    asked = parser.parse_args(arguments)
    if len(asked.files) % 2:
        parser.error("every part of the model needs its rows: MODEL ROWS")
    forms = forms_of(asked, len(asked.files) // 2)
    pairs = [(model_of(path), *rows) for path, *rows in zip(asked.files[::2], asked.files[1::2], forms, strict=True)]
    pairs.sort(key=lambda pair: pair[0].get("role", ""))  # the active party first
    models, paths, forms = zip(*pairs, strict=True)
    if len(models) > 1 and any(model["format"] in WHOLE_MODELS for model in models):
        raise ValueError("one of the models is whole: score it by itself")
    if models[0]["format"] == FORMAT and sorted(m["party"] for m in models) != sorted(models[0]["data_parties"]):
        raise ValueError(f"the model needs one part of each of {', '.join(models[0]['data_parties'])}")
    if len({m.get("session") for m in models}) != 1:
        raise ValueError("the parts are not of one training")
    tables = [read(path, asked.id, model, form) for model, path, form in pairs]
    write(paths, models, tables, forms, refuses_unseen=asked.refuse_unseen)


def model_of(path):
    try:
        model = json.loads(pathlib.Path(path).read_text("utf-8"))
    except ValueError:
        model = None
    if not isinstance(model, dict) or model.get("format") not in (FORMAT, *WHOLE_MODELS) or "weights" not in model:
        raise ValueError(f"{path} is not a linear model, or a part of one")
    return model


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except BrokenPipeError:  # who reads the scores has read enough
        sys.stderr.close()
    except (KeyError, OSError, TypeError, ValueError) as error:
        sys.exit(f"error: {error if not isinstance(error, KeyError) else f'no field {error}'}")
