"""Names in C: functions that every C compiler links, and words that no function of ours can be called."""

from __future__ import annotations

import re

from .ahead_files import example_code

_LIBM = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 fabs floor fma fmax
fmin fmod frexp hypot ldexp lgamma log log10 log1p log2 logb lrint llrint lround llround modf nearbyint pow nextafter
remainder rint round roundeven scalbn sin sincos sinh sqrt tan tanh tgamma trunc
"""

LIBRARIES = frozenset([*_LIBM.split(), *(f"{name}f" for name in _LIBM.split()), "memcpy", "memmove", "memset"])
"""Functions of libm and libc that an object may need."""

COMPILER = re.compile(r"__\w+")
"""Functions of the C compiler's own library, which it links by itself: conversions of f16, 128-bit division."""

_KEYWORDS = """
alignas alignof and asm auto bool break case catch char class compl concept const constexpr continue decltype default
delete do double else enum explicit export extern false float for friend goto if inline int long main mutable
namespace new noexcept not nullptr operator or private protected public register requires restrict return short signed
sizeof static struct switch template this throw true try typedef typeid typename typeof union unsigned using virtual
void volatile while xor
"""

_LIBC = """
abort abs accept access aligned_alloc alarm atexit atof atoi atol atoll bind bsearch calloc clearerr clock close
connect ctime difftime div dup environ errno execv exit fclose feof ferror fflush fgetc fgets fopen fork fprintf fputc
fputs fread free freopen fscanf fseek ftell fwrite getc getchar getenv gets getpid index ioctl isalnum isalpha isdigit
isspace kill labs ldiv link listen llabs lldiv lseek malloc memchr memcmp mktime nice open pause perror pipe printf
putc putchar puts qsort raise rand read realloc recv remove rename rewind rindex scanf select send setenv signal sleep
snprintf socket sprintf srand sscanf stat stderr stdin stdout strcat strchr strcmp strcpy strdup strlen strncat
strncmp strncpy strstr strtod strtof strtok strtol strtoul sync system time tmpfile tolower toupper ungetc unlink wait
write
"""

_WORD = re.compile(r"\b[a-z]\w*\b")

TAKEN = frozenset([*_KEYWORDS.split(), *_LIBC.split(), *LIBRARIES, *_WORD.findall(example_code())])
"""Words of C and C++, names of libc and libm, and those in the example."""

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def is_free(name: str) -> bool:
    """Whether a C function can have the name, beside those of C and of our own functions."""
    return bool(_IDENTIFIER.fullmatch(name)) and name not in TAKEN and not name.startswith("testbed_")
