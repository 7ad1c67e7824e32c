/* XLA's FFI, as much of it as handlers of kernels need: `testbed ffi build` puts it in front of them. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct { size_t struct_size; void *extension_start; int major_version, minor_version; } Version;
typedef struct { size_t struct_size; void *extension_start; const char *message; int errc; } ErrorCreateArgs;
typedef struct { size_t struct_size; void *extension_start; Version version; const void *internal_api;
                 void *(*error_create)(ErrorCreateArgs *); } Api;
typedef struct { size_t struct_size; void *extension_start; int dtype; char *data; int64_t rank;
                 int64_t *dims; } Buffer;
typedef struct { size_t struct_size; void *extension_start; int64_t size; int *types; Buffer **args; } Args;
typedef struct { const char *ptr; size_t len; } ByteSpan;
typedef struct { int dtype; void *value; } Scalar;
typedef struct { int dtype; size_t size; void *data; } Array;
typedef struct { size_t struct_size; void *extension_start; int64_t size; int *types; ByteSpan **names;
                 void **attrs; } Attrs;
typedef struct { size_t struct_size; void *extension_start; const Api *api; void *ctx; int stage; Args args, rets;
                 Attrs attrs; void *future; } CallFrame;
typedef struct { size_t struct_size; Version version; uint32_t traits; int64_t state_type_id; } Metadata;
typedef struct { size_t struct_size; int type; void *next; Metadata *metadata; } Extension;

typedef struct { char why[2048], bad[256]; size_t why_size, bad_size; } Diagnosis;

static const char *const stages[] = {"instantiate", "prepare", "initialize", "execute", "record"};
static const char *const kinds[] = {"", "array", "dictionary", "scalar", "string"};

static const char *dtype_name(int dtype) {
  switch (dtype) {
/* dtypes */
  }
  return "INVALID";
}

static const char *stage_name(int stage) { return stage >= 0 && stage < 5 ? stages[stage] : "unknown"; }
static const char *kind_name(int kind) { return kind > 0 && kind < 5 ? kinds[kind] : "unknown"; }

static void *fail(const CallFrame *frame, int code, const char *text) {
  ErrorCreateArgs args = {28, NULL, text, code};
  return frame->api->error_create(&args);
}

static void say(char *text, size_t size, size_t *used, const char *more) {
  size_t length = strlen(more);
  if (*used + length < size) memcpy(text + *used, more, length + 1), *used += length;
}

static int wrong(Diagnosis *d, int number, const char *why) {
  char place[16];
  snprintf(place, sizeof place, d->bad_size ? ", %d" : "%d", number);
  say(d->bad, sizeof d->bad, &d->bad_size, place);
  say(d->why, sizeof d->why, &d->why_size, why);
  return 0;
}

static int64_t elements(const Buffer *b) {
  int64_t count = 1, n;
  for (n = 0; n < b->rank; n++) count *= b->dims[n];
  return count;
}

static const Buffer nothing;

static const Buffer *buffer(const Args *args, int index, int result, int dtype, int64_t rank, int number, Diagnosis *d) {
  char why[160];
  const Buffer *b = args->args[index];
  if (args->types[index] != 1)
    snprintf(why, sizeof why, "Wrong %s type: expected buffer but got %d", result ? "result" : "argument", args->types[index]);
  else if (b->dtype != dtype)
    snprintf(why, sizeof why, "Wrong buffer dtype: expected %s but got %s", dtype_name(dtype), dtype_name(b->dtype));
  else if (rank >= 0 && b->rank != rank)
    snprintf(why, sizeof why, "Wrong buffer rank: expected %lld but got %lld", (long long)rank, (long long)b->rank);
  else
    return b;
  wrong(d, number, why);
  return &nothing;
}

/* The attribute at a place of the sorted ones, or NULL. */
static const void *attribute(const Attrs *attrs, int place, const char *name, int kind, int dtype, int number,
                             Diagnosis *d) {
  char why[512];
  const ByteSpan *got = attrs->names[place];
  const void *found = attrs->attrs[place];
  int type = attrs->types[place];
  const char *what = kind == 1 ? "array" : "scalar";
  if (got->len != strlen(name) || memcmp(got->ptr, name, got->len))
    snprintf(why, sizeof why, "Attribute name mismatch: %.*s vs %s", (int)(got->len < 200 ? got->len : 200), got->ptr, name);
  else if (dtype < 0 && (type != 3 || ((const Scalar *)found)->dtype != -dtype))
    snprintf(why, sizeof why, "Wrong attribute type: expected i64 scalar for passing pointer but got %s", kind_name(type));
  else if (type != kind)
    snprintf(why, sizeof why, "Wrong attribute type: expected %s but got %s", kind_name(kind), kind_name(type));
  else if (dtype > 0 && *(const int *)found != dtype)
    snprintf(why, sizeof why, "Wrong %s data type: expected %s but got %s", what, dtype_name(dtype),
             dtype_name(*(const int *)found));
  else
    return found;
  wrong(d, number, why);
  return NULL;
}

static void *undecoded(const CallFrame *frame, const Diagnosis *d) {
  char text[2600];
  snprintf(text, sizeof text, "[%s] Failed to decode all FFI handler operands (bad operands at: %s)\nDiagnostics:\n%s",
           stage_name(frame->stage), d->bad, d->why);
  return fail(frame, 3, text);
}

static void *metadata(const CallFrame *frame) {
  const Extension *extension = frame->extension_start;
  char text[160];
  int major = frame->api->version.major_version, minor = frame->api->version.minor_version;
  if (extension->struct_size < 32 || extension->metadata->struct_size < 36) {
    int whole = extension->struct_size < 32;
    snprintf(text, sizeof text, "Unexpected XLA_FFI_Metadata%s size: expected at least %d got %zu. "
             "Check installed software versions.", whole ? "_Extension" : "", whole ? 32 : 36,
             whole ? extension->struct_size : extension->metadata->struct_size);
    return fail(frame, 3, text);
  }
  if (major > NEWEST_MAJOR || (major == NEWEST_MAJOR && minor > NEWEST_MINOR)) major = NEWEST_MAJOR, minor = NEWEST_MINOR;
  extension->metadata->version = (Version){24, NULL, major, minor};
  extension->metadata->traits = 0;
  if (major > 0 || minor > 1) extension->metadata->state_type_id = 0;
  return NULL;
}

/* What is wrong with a frame before it is decoded, as an error; *done: nothing more is to do. */
static void *refused(const CallFrame *frame, int64_t args, int64_t rets, int64_t attrs, int *done) {
  char text[1024];
  const char *what = frame->args.size != args && args ? "arguments" : "results";
  size_t used;
  int64_t n;
  *done = 1;
  if (frame->struct_size != 168) {
    snprintf(text, sizeof text, "Unexpected XLA_FFI_CallFrame size: expected 168 got %zu. Check installed software versions.",
             frame->struct_size);
    return fail(frame, 3, text);
  }
  if (frame->extension_start && ((const Extension *)frame->extension_start)->type == 1) return metadata(frame);
  if (frame->stage != 3) {
    snprintf(text, sizeof text, "Wrong execution stage: expected `execute` but got `%s`", stage_name(frame->stage));
    return fail(frame, 3, text);
  }
  if ((args && frame->args.size != args) || (rets && frame->rets.size != rets)) {
    int first = what[0] == 'a';
    snprintf(text, sizeof text, "[execute] Wrong number of %s: expected %lld but got %lld", what,
             (long long)(first ? args : rets), (long long)(first ? frame->args.size : frame->rets.size));
    return fail(frame, 3, text);
  }
  if (attrs && frame->attrs.size != attrs) {
    snprintf(text, sizeof text, "[execute] Wrong number of attributes: expected %lld but got %lld%s", (long long)attrs,
             (long long)frame->attrs.size, frame->attrs.size ? " with name(s): " : "");
    used = strlen(text);
    for (n = 0; n < frame->attrs.size && used + frame->attrs.names[n]->len + 3 < sizeof text; n++) {
      if (n) memcpy(text + used, ", ", 2), used += 2;
      memcpy(text + used, frame->attrs.names[n]->ptr, frame->attrs.names[n]->len);
      used += frame->attrs.names[n]->len;
    }
    text[used] = 0;
    return fail(frame, 3, text);
  }
  *done = 0;
  return NULL;
}

static void *status(const CallFrame *frame, const char *name, int code) {
  char text[400];
  if (!code) return NULL;
  snprintf(text, sizeof text, "kernel %s returned %d", name, code);
  return fail(frame, code > 0 && code <= 16 ? code : 13, text);
}
