"""The texts beside an object compiled ahead of time: a C header, an example that calls it, and its Makefile."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...codegen.options import Target
from ...hlo.ir import Module
from ...planning.allocation import POOL_ALIGNMENT
from .ahead_ir import MISALIGNED, Arena
from .leaves import Leaf
from .signature import Signature


def header(name: str, module: Module, signature: Signature, arena: Arena, target: Target) -> str:
    """What a caller must know: the function, and constants of its arrays and of the scratch memory."""
    prefix = name.upper()
    names = [p.name for p in module.entry.parameters for _, leaf in p.shape.leaves() if leaf.is_array]
    given = [
        f"  {prefix}_INPUT_{n}: {_described(leaf)}  {_plain(p)}"
        for n, (leaf, p) in enumerate(zip(signature.inputs, names))
    ]
    made = [f"  {prefix}_OUTPUT_{n}: {_described(leaf)}" for n, leaf in enumerate(signature.outputs)]
    made += [
        f"  Output {o} is input {i}, changed in place: pass one array as both, or two that do not overlap."
        for i, o in signature.aliased
    ]
    defines = [*_lists(f"{prefix}_INPUT", signature.inputs), *_lists(f"{prefix}_OUTPUT", signature.outputs)]
    return _HEADER.format(
        name=name,
        prefix=prefix,
        module=_plain(module.name),
        triple=target.triple,
        cpu=_plain(target.cpu),
        given="\n".join(given) or "  none",
        made="\n".join(made) or "  none",
        defines="\n".join(defines),
        scratch=arena.size,
        alignment=POOL_ALIGNMENT,
        misaligned=MISALIGNED,
    )


def _plain(text: str) -> str:
    """A name that ends no comment."""
    return re.sub(r"[^\w.+-]", "_", text, flags=re.ASCII)


def _described(leaf: Leaf) -> str:
    order = ",".join(map(str, leaf.shape.minor_to_major))
    layout = "" if leaf.order is None else f", minor to major {{{order}}}"
    return f"{leaf.shape.without_layout()}, {leaf.bytes} bytes at a multiple of {leaf.alignment}{layout}"


def _lists(prefix: str, leaves: Sequence[Leaf]) -> Iterator[str]:
    """Macros for each array, and lists of all for loops over them; a list for no array holds one value."""
    yield f"#define {prefix}_COUNT {len(leaves)}"
    for n, leaf in enumerate(leaves):
        yield f'#define {prefix}_{n}_DTYPE "{leaf.shape.dtype.value}"'
        yield f"#define {prefix}_{n}_RANK {len(leaf.dims)}"
        yield f"#define {prefix}_{n}_DIMS {_list(leaf.dims)}"
        yield f"#define {prefix}_{n}_ELEMENTS {leaf.shape.size}"
        yield f"#define {prefix}_{n}_BYTES {leaf.bytes}"
        yield f"#define {prefix}_{n}_ALIGNMENT {leaf.alignment}"
    yield f"#define {prefix}_BYTES {_list([leaf.bytes for leaf in leaves])}"
    dtypes = ", ".join(f'"{leaf.shape.dtype.value}"' for leaf in leaves)
    yield f"#define {prefix}_DTYPES {{{dtypes or '0'}}}"


def _list(numbers: Sequence[int]) -> str:
    return f"{{{', '.join(map(str, numbers)) or '0'}}}"


_HEADER = """\
/* The program {module}, compiled ahead of time by testbed for {triple} ({cpu}).

Inputs:
{given}
Outputs:
{made}

Arrays are in memory as their type and layout say, without gaps; pred takes a byte, as do types of less than 8 bits.
*/
#ifndef {prefix}_H
#define {prefix}_H

#ifdef __cplusplus
extern "C" {{
#endif

{defines}

/* Bytes of the memory for temporary values, and its alignment. */
#define {prefix}_SCRATCH_BYTES {scratch}
#define {prefix}_SCRATCH_ALIGNMENT {alignment}

/* What {name} returns: the results are there; or nothing was computed, because an address is not aligned. */
#define {prefix}_DONE 0
#define {prefix}_MISALIGNED {misaligned}

/* Run the program on the calling thread.

inputs, outputs: one pointer for each, in the order above; inputs are only read, outputs are filled. No output may
overlap another array, apart from the pairs named above. An array of 0 bytes may be NULL; arrays of pointers for a count
of 0 too. scratch: {prefix}_SCRATCH_BYTES bytes, which no other call uses meanwhile, with any content; NULL for 0 bytes.
Nothing is kept between two calls, and threads may call it at the same time. */
int {name}(const void *const *inputs, void *const *outputs, void *scratch);

#ifdef __cplusplus
}}
#endif
#endif
"""


def example(name: str) -> str:
    """A C program: inputs from files, or zeros; outputs to files, or printed."""
    return _EXAMPLE.replace("NAME", name.upper()).replace("name", name)


def example_code() -> str:
    """The example without comments and strings, with `name` for the function."""
    return re.sub(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', " ", _EXAMPLE, flags=re.DOTALL)


_EXAMPLE = r"""/* Calls name once.

    ./example                          fills the inputs with zeros and prints the first elements of each output
    ./example IN0 IN1 ... OUT0 ...   reads the inputs from files and writes the outputs to files, as raw bytes
*/
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "name.h"

static const size_t input_bytes[] = NAME_INPUT_BYTES;
static const size_t output_bytes[] = NAME_OUTPUT_BYTES;
static const char *const output_dtypes[] = NAME_OUTPUT_DTYPES;

static void *memory(size_t bytes) {
  size_t whole = (bytes + NAME_SCRATCH_ALIGNMENT) / NAME_SCRATCH_ALIGNMENT * NAME_SCRATCH_ALIGNMENT;
  void *block = aligned_alloc(NAME_SCRATCH_ALIGNMENT, whole);
  if (block == NULL) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return memset(block, 0, whole);
}

/* Reads or writes a file of exactly this size. */
static void transfer(const char *path, void *data, size_t bytes, int writes) {
  FILE *file = fopen(path, writes ? "wb" : "rb");
  int good = file != NULL && (writes ? fwrite(data, 1, bytes, file) : fread(data, 1, bytes, file)) == bytes;
  good = good && (writes || fgetc(file) == EOF);
  if (file != NULL && fclose(file) != 0) good = 0;
  if (!good) {
    fprintf(stderr, "%s: cannot %s %zu bytes\n", path, writes ? "write" : "read", bytes);
    exit(1);
  }
}

static void print_elements(const char *dtype, const void *data, size_t bytes) {
  size_t at, first = bytes < 32 ? bytes : 32;
  for (at = 0; at < first;) {
    const char *place = (const char *)data + at;
    float f;
    double d;
    int32_t i;
    if (strcmp(dtype, "f32") == 0) {
      memcpy(&f, place, 4), at += 4, printf(" %.9g", f);
    } else if (strcmp(dtype, "f64") == 0) {
      memcpy(&d, place, 8), at += 8, printf(" %.17g", d);
    } else if (strcmp(dtype, "s32") == 0) {
      memcpy(&i, place, 4), at += 4, printf(" %ld", (long)i);
    } else {
      printf(" %02x", (unsigned char)*place), at += 1;
    }
  }
  printf("%s\n", bytes > first ? " ..." : "");
}

int main(int argc, char **argv) {
  const void *inputs[NAME_INPUT_COUNT + 1] = {NULL};
  void *outputs[NAME_OUTPUT_COUNT + 1] = {NULL};
  void *scratch = memory(NAME_SCRATCH_BYTES);
  int n, status, files = argc > 1;
  if (files && argc != 1 + NAME_INPUT_COUNT + NAME_OUTPUT_COUNT) {
    fprintf(stderr, "give %d files of inputs and %d of outputs\n", NAME_INPUT_COUNT, NAME_OUTPUT_COUNT);
    return 2;
  }
  for (n = 0; n < NAME_INPUT_COUNT; n++) {
    void *block = memory(input_bytes[n]);
    if (files) transfer(argv[1 + n], block, input_bytes[n], 0);
    inputs[n] = block;
  }
  for (n = 0; n < NAME_OUTPUT_COUNT; n++) outputs[n] = memory(output_bytes[n]);
  status = name(inputs, outputs, scratch);
  if (status != NAME_DONE) {
    fprintf(stderr, "name returned %d\n", status);
    return 1;
  }
  for (n = 0; n < NAME_OUTPUT_COUNT; n++) {
    if (files) {
      transfer(argv[1 + NAME_INPUT_COUNT + n], outputs[n], output_bytes[n], 1);
    } else {
      printf("output %d, %s:", n, output_dtypes[n]);
      print_elements(output_dtypes[n], outputs[n], output_bytes[n]);
    }
    free(outputs[n]);
  }
  for (n = 0; n < NAME_INPUT_COUNT; n++) free((void *)inputs[n]);
  free(scratch);
  return 0;
}
"""


def makefile(name: str, target: Target, relocation: str) -> str:
    """Builds the example with $(CC), a compiler for the target."""
    flags = {"static": "-no-pie", "pic": "", "pie": "-pie"}[relocation]
    compile_flags = {"static": "-fno-pie", "pic": "", "pie": "-fPIE"}[relocation]
    return (
        f"# Builds the example. CC: a C compiler for {target.triple}.\nCFLAGS ?= -O2 -Wall {compile_flags}".rstrip()
        + f"\nLDFLAGS += {flags}".rstrip()
        + "\n\n"
        f"example: main.c {name}.h {name}.o\n"
        f"\t$(CC) $(CFLAGS) -o $@ main.c {name}.o $(LDFLAGS) -lm\n\n"
        "clean:\n\trm -f example\n\n.PHONY: clean\n"
    )
