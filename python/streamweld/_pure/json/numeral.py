"""How big a JSON number token is, in bounded memory, and integers of any length. It knows no JSON beyond numbers."""

from __future__ import annotations

from typing import Final, NamedTuple


class Numeral(NamedTuple):
    """What must be known of a number token to judge its size, whatever its length. Immutable, so copies share it."""

    negative: bool = False
    integer_digits: int = 0  # 0 for a zero before the point
    significant: bytes = b""  # the first digits from the first that is not 0, integer and fraction together
    leading_zeros: int = 0  # behind the point, before the first significant digit
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
        """Whether the nearest double is infinity: decided exactly, on the first 309 digits."""
        if not self.significant:
            return False
        power = self.integer_digits - 1 if self.integer_digits else -1 - self.leading_zeros
        power += -self.exponent if self.exponent_negative else self.exponent
        if power != _INFINITE_POWER:
            return power > _INFINITE_POWER
        return self.significant.ljust(_SIGNIFICANT, b"0") >= _INFINITE


def exact_int(digits: str) -> int:
    """The integer of a JSON token of any length: `int()` refuses more than 4,300 digits, and takes quadratic time."""
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
    """The digits of an integer of any length: `str()` refuses more than 4,300 of them."""
    pieces: list[str] = []
    rest = abs(value)
    while rest >= _PIECE:
        rest, low = divmod(rest, _PIECE)
        pieces.append(f"{low:0{_DIRECT}}")
    pieces.append(f"-{rest}" if value < 0 else str(rest))
    return "".join(reversed(pieces))


# The lowest limit that sys.set_int_max_str_digits takes is 640 digits: at or below it int() works in every process.
_DIRECT: Final = 640
_PIECE: Final = 10**_DIRECT
_HUGE: Final = 10**30  # above every count of digits that memory can hold
# The least decimal that rounds to infinity: halfway between the largest double and 2^1024.
_INFINITE: Final = str((1 << 1024) - (1 << 970)).encode()
_SIGNIFICANT: Final = len(_INFINITE)
_INFINITE_POWER: Final = _SIGNIFICANT - 1
