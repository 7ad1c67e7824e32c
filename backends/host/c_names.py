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
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class co_await co_return co_yield compl
concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else
enum explicit export extern false float for friend goto if inline int linux long main mutable namespace new noexcept
not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid
typename typeof union unix unsigned using virtual void volatile while xor xor_eq
"""
"""linux, unix: macros of C compilers."""

_LIBC = """
BIG_ENDIAN BUFSIZ BYTE_ORDER EOF FILE FILENAME_MAX FOPEN_MAX HUGE_VAL HUGE_VALF HUGE_VALL INFINITY LITTLE_ENDIAN
MB_CUR_MAX NAN NDEBUG NFDBITS NULL PDP_ENDIAN P_tmpdir a64l abort abs accept access aligned_alloc alarm alloca
arc4random at_quick_exit atexit atof atoi atol atoll bcmp bcopy bind bsearch bzero calloc clearenv clearerr clock close
connect ctermid ctime difftime div dprintf drand48 drem dup ecvt environ erand48 errno execv exit explicit_bzero fclose
fcvt fd_mask fd_set fdim fdopen feof ferror fflush ffs ffsl ffsll fgetc fgetpos fgets fileno finite flockfile fmemopen
fopen fork fpclassify fprintf fputc fputs fread free freopen fscanf fseek fseeko fsetpos ftell ftello ftrylockfile
funlockfile fwrite gamma gcvt getc getchar getdelim getenv getline getloadavg getpid gets getsubopt getw ilogb index
initstate ioctl isalnum isalpha isdigit isfinite isgreater isgreaterequal isinf isless islessequal islessgreater isnan
isnormal isspace isunordered j0 j1 jn jrand48 kill l64a labs lcong48 ldiv link listen llabs lldiv lrand48 lseek malloc
math_errhandling mblen mbstowcs mbtowc memccpy memchr memcmp mkdtemp mkstemp mkstemps mktemp mktime mrand48 nan
nexttoward nice nrand48 on_exit open open_memstream pause pclose perror pipe popen posix_memalign printf pselect putc
putchar putenv puts putw qecvt qfcvt qgcvt qsort quick_exit raise rand random read realloc reallocarray realpath recv
remove remquo rename renameat rewind rindex rpmatch scalb scalbln scanf seed48 select send setbuf setbuffer setenv
setlinebuf setstate setvbuf signal signbit signgam significand sleep snprintf socket sprintf srand srand48 srandom
sscanf stat stderr stdin stdout stpcpy stpncpy strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup strerror
strlen strncasecmp strncat strncmp strncpy strndup strnlen strpbrk strrchr strsep strsignal strspn strstr strtod strtof
strtok strtol strtold strtoll strtoq strtoul strtoull strtouq strxfrm sync system tempnam time tmpfile tmpnam tolower
toupper u_char u_int u_long u_short uint ulong ungetc unlink unsetenv ushort valloc vdprintf vfprintf vfscanf vprintf
vscanf vsnprintf vsprintf vsscanf wait wcstombs wctomb write y0 y1 yn
"""

_RESERVED = re.compile(
    r"\w+(_t|_MAX|_MIN|_C|_r|_l|_unlocked)|(EXIT|FD|FP|L|M|MATH|SEEK)_\w+"
    r"|W(IF\w+|(EXIT|STOP|TERM)(STATUS|SIG)|NOHANG|NOWAIT|UNTRACED|(EXIT|STOPP|CONTINU)ED)"
    r"|arc4random_\w+|[bl]e\d+toh|hto[bl]e\d+"
)
"""Families of names in the headers of libc: types, limits, and variants of functions and macros."""

_WORD = re.compile(r"\b[a-z]\w*\b")

TAKEN = frozenset([*_KEYWORDS.split(), *_LIBC.split(), *LIBRARIES, *_WORD.findall(example_code())])
"""Words of C and C++, names of libc and libm, and those in the example."""

LONGEST = 200
"""Characters of a name: with its suffix it is the name of a file, too, which has at most 255."""

_IDENTIFIER = re.compile(rf"[A-Za-z][A-Za-z0-9_]{{0,{LONGEST - 1}}}")


def is_free(name: str) -> bool:
    """Whether a C function can have the name, besides those of C and of our own functions."""
    if not _IDENTIFIER.fullmatch(name) or name.startswith("testbed_") or _RESERVED.fullmatch(name):
        return False
    return not {name, name.removesuffix("f"), name.removesuffix("l")} & TAKEN
