"""What one message may cost, however it was made; each default with its reason."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on decoding. The bytes of a message are bounded by the frame, before this.

    Attributes:
        array_items_max: items of all arrays of one message together. An item of a few bytes
            becomes an object of up to some hundred (CVE-2026-111108 is that amplification), so
            the count is bounded and not only checked against the bytes that are left. No broker
            of this kind holds more partitions than this, and no client asks for more at once.
        tagged_fields_max: tagged fields of one struct. The largest declared struct has nine;
            unknown ones are skipped without being kept (CVE-2026-111115 kept millions).
    """

    array_items_max: int = 100_000
    tagged_fields_max: int = 256


DEFAULT_LIMITS = Limits()
