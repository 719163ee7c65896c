"""Measure a JSON number token in bounded memory, and convert integers of any length."""

from __future__ import annotations

from typing import Final, NamedTuple


class Numeral(NamedTuple):
    """The size of a number token, which may have any length. The object is immutable, so copies of the automaton can
    share it.
    """

    negative: bool = False
    integer_digits: int = 0  # 0 if the only digit before the point is a zero
    # The first significant digits, beginning with the first nonzero digit, on both sides of the decimal point.
    significant: bytes = b""
    leading_zeros: int = 0  # number of zeros after the point and before the first significant digit
    exponent: int = 0
    exponent_negative: bool = False

    def with_integer(self, digits: bytes) -> Numeral:
        significant = self.significant + digits[: _SIGNIFICANT - len(self.significant)]
        return Numeral(self.negative, self.integer_digits + len(digits), significant)

    def with_fraction(self, digits: bytes) -> Numeral:
        zeros = 0
        if not self.significant:
            zeros = len(digits) - len(digits.lstrip(b"0"))
        significant = self.significant + digits[zeros : zeros + _SIGNIFICANT - len(self.significant)]
        return Numeral(self.negative, self.integer_digits, significant, self.leading_zeros + zeros)

    def with_exponent_sign(self, *, negative: bool) -> Numeral:
        return self._replace(exponent_negative=negative)

    def with_exponent(self, digits: bytes) -> Numeral:
        if self.exponent == 0:
            digits = digits.lstrip(b"0") or b"0"
        if len(digits) > 30:
            return self._replace(exponent=_HUGE)
        return self._replace(exponent=min(_HUGE, self.exponent * 10 ** len(digits) + int(digits)))

    def exceeds_64_bits(self) -> bool:
        if self.integer_digits < 19:
            return False
        if self.integer_digits > 20:
            return True
        return int(self.significant) > (1 << 63 if self.negative else (1 << 64) - 1)

    def overflows_double(self) -> bool:
        """Return True if the nearest double is infinity.

        The result is exact, because up to 309 digits are compared.
        """
        if not self.significant:
            return False
        power = self.integer_digits - 1 if self.integer_digits else -1 - self.leading_zeros
        power += -self.exponent if self.exponent_negative else self.exponent
        if power != _INFINITE_POWER:
            return power > _INFINITE_POWER
        return self.significant.ljust(_SIGNIFICANT, b"0") >= _INFINITE


def exact_int(digits: str) -> int:
    """Convert an integer token of any length. The built-in `int()` rejects more than 4,300 digits, and takes quadratic
    time.
    """
    if len(digits) <= _DIRECT:
        return int(digits)
    negative = digits.startswith("-")
    size = len(digits) - negative
    powers: dict[int, int] = {}

    def power(exponent: int) -> int:
        known = powers.get(exponent)
        if known is None:
            half = exponent // 2
            known = powers[exponent] = 10**exponent if exponent <= _DIRECT else power(half) * power(exponent - half)
        return known

    def part(start: int, end: int) -> int:
        length = end - start
        if length <= _DIRECT:
            return int(digits[start:end])
        low = length // 2
        return part(start, end - low) * power(low) + part(end - low, end)

    value = part(int(negative), size + negative)
    return -value if negative else value


def exact_digits(value: int) -> str:
    """Return the digits of an integer of any length. The built-in `str()` rejects more than 4,300 digits."""
    pieces: list[str] = []
    rest = abs(value)
    while rest >= _PIECE:
        rest, low = divmod(rest, _PIECE)
        pieces.append(f"{low:0{_DIRECT}}")
    pieces.append(f"-{rest}" if value < 0 else str(rest))
    return "".join(reversed(pieces))


# `sys.set_int_max_str_digits` does not accept a limit below 640 digits, so `int()` works up to this length in every
# process.
_DIRECT: Final = 640
_PIECE: Final = 10**_DIRECT
_HUGE: Final = 10**30  # larger than any number of digits that fits in memory
# The smallest decimal that rounds to infinity: halfway between the largest double and 2^1024.
_INFINITE: Final = str((1 << 1024) - (1 << 970)).encode()
_SIGNIFICANT: Final = len(_INFINITE)
_INFINITE_POWER: Final = _SIGNIFICANT - 1
