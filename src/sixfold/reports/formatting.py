"""Numbers, durations and settings as a person reads them: 3M, 5 min 10 s, 1,200."""

from __future__ import annotations


def format_number(value: float, largest: float = 0.0) -> str:
    """Return a short form such as 0.05, 1,200 or 3M.

    `largest` is the largest number of an axis: all numbers of the axis then have the unit of that one.
    """
    if value and max(abs(value), largest) < 1e-2:
        return f"{value:.1e}".replace(".0e", "e").replace("e-0", "e-")
    for size, unit, threshold in ((1e9, "G", 1e9), (1e6, "M", 1e6), (1e3, "k", 1e4)):
        if value and max(abs(value), largest) >= threshold:
            return f"{value / size:.4g}{unit}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def format_duration(seconds: float) -> str:
    """Return a duration such as "3 h 20 min", "5 min 10 s" or "8 s"."""
    total = round(seconds)
    if total >= 3600:
        return f"{total // 3600} h {total % 3600 // 60} min"
    return f"{total // 60} min {total % 60} s" if total >= 60 else f"{total} s"


def format_setting(value: object) -> str:
    """Return the value of a setting as a table shows it: "true", 0.0005, "10,000", or a list separated by commas."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
