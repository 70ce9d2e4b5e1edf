"""bench/html/tables.py - writes tables of any rows and columns. Their headings sort them."""
from texts import digits, escape, ratio_text


class Column:
    """A column of a table.

    `text` returns the text that the column shows of a row. `value` returns the number by which the column is
    sorted. A column without `value` is sorted by its text. `name` is the column's name for programs."""

    def __init__(self, heading, text, value=None, name="", hint=""):
        self.heading, self.text, self.value, self.name, self.hint = heading, text, value, name, hint

    def cell(self, row):
        text = self.text(row)
        if self.value is None:
            return f'<td class="t">{escape(text)}</td>' if self.heading == "remarks" else \
                f"<td>{escape(text)}</td>"
        value = self.value(row)
        number = "" if value is None else f"{value:.10g}"
        return f'<td class="n" data-v="{number}">{escape(text)}</td>'


def table_of(columns, rows, kind, label, attributes_of):
    """Returns a table whose headings sort it. Columns that are empty in all rows are left out."""
    shown = [column for column in columns if any(column.text(row) for row in rows)]
    head = "".join(
        f'<th scope="col" data-name="{escape(column.name or column.heading)}"'
        f'{" data-numeric class=n" if column.value else ""}>'
        f'<button type="button" title="{escape(column.hint or "Sorts by this column.")}">'
        f"{escape(column.heading)}<span class=\"arrow\" aria-hidden=\"true\"></span></button></th>"
        for column in shown)
    body = "\n".join(f"<tr{attributes_of(row)}>" + "".join(column.cell(row) for column in shown) + "</tr>"
                     for row in rows)
    return (f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">'
            f'<table class="{kind}"><caption class="hidden">{escape(label)}</caption>'
            f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>")


def us_column(heading, of, name, hint=""):
    """A column of nanoseconds, which are shown as microseconds."""
    def text(row):
        ns = of(row)
        return "" if ns is None else digits(ns / 1000)
    return Column(heading, text, of, name, hint)


def number_column(heading, of, name, hint=""):
    """A column of numbers, which are shown with about three digits."""
    return Column(heading, lambda row: digits(of(row)), of, name, hint)


def ratio_column(heading, of, name, hint):
    """A column of ratios."""
    def text(row):
        value = of(row)
        return "" if value is None else ratio_text(value)
    return Column(heading, text, of, name, hint)
