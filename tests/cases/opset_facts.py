"""The facts of every opcode written a second time, as XLA has them: opset.py is compared with this, row by row."""

FACTS = """
# unary
abs                        | 1  | signed float complex          | elementwise |  0 |
acos                       | 1  | float complex                 | elementwise |  4 | result_accuracy
acosh                      | 1  | float complex                 | elementwise |  4 | result_accuracy
asin                       | 1  | float complex                 | elementwise |  4 | result_accuracy
asinh                      | 1  | float complex                 | elementwise |  4 | result_accuracy
atanh                      | 1  | float complex                 | elementwise |  4 | result_accuracy
cbrt                       | 1  | float complex                 | elementwise |  4 | result_accuracy
ceil                       | 1  | float                         | elementwise |  0 |
cosine                     | 1  | float complex                 | elementwise |  4 | result_accuracy
cosh                       | 1  | float complex                 | elementwise |  4 | result_accuracy
count-leading-zeros        | 1  | signed unsigned               | elementwise |  0 |
erf                        | 1  | float                         | elementwise |  6 | result_accuracy
exponential                | 1  | float complex                 | elementwise |  4 | result_accuracy
exponential-minus-one      | 1  | float complex                 | elementwise |  4 | result_accuracy
floor                      | 1  | float                         | elementwise |  0 |
imag                       | 1  | float complex                 | elementwise |  0 |
is-finite                  | 1  | float                         | elementwise |  0 |
log                        | 1  | float complex                 | elementwise |  4 | result_accuracy
log-plus-one               | 1  | float complex                 | elementwise |  4 | result_accuracy
logistic                   | 1  | float complex                 | elementwise |  4 | result_accuracy
negate                     | 1  | signed unsigned float complex | elementwise |  0 |
not                        | 1  | pred signed unsigned          | elementwise |  0 |
popcnt                     | 1  | signed unsigned               | elementwise |  0 |
real                       | 1  | float complex                 | elementwise |  0 |
round-nearest-afz          | 1  | float                         | elementwise |  0 |
round-nearest-even         | 1  | float                         | elementwise |  0 |
rsqrt                      | 1  | float complex                 | elementwise |  4 | result_accuracy
sign                       | 1  | signed float complex          | elementwise |  0 |
sine                       | 1  | float complex                 | elementwise |  4 | result_accuracy
sinh                       | 1  | float complex                 | elementwise |  4 | result_accuracy
sqrt                       | 1  | float complex                 | elementwise |  0 | result_accuracy
tan                        | 1  | float complex                 | elementwise |  6 | result_accuracy
tanh                       | 1  | float complex                 | elementwise |  6 | result_accuracy
# convert
convert                    | 1  | any                           | elementwise |  0 |
bitcast-convert            | 1  | any                           | elementwise |  0 |
reduce-precision           | 1  | float                         | elementwise |  0 | exponent_bits! mantissa_bits!
stochastic-convert         | 2  | float                         | elementwise |  0 |
# binary
add                        | 2  | any                           | elementwise |  0 |
and                        | 2  | pred signed unsigned          | elementwise |  0 |
atan2                      | 2  | float complex                 | elementwise |  4 |
compare                    | 2  | any                           | elementwise |  0 | direction! type
complex                    | 2  | f32 f64                       | elementwise |  0 |
divide                     | 2  | signed unsigned float complex | elementwise |  0 |
maximum                    | 2  | any                           | elementwise |  0 |
minimum                    | 2  | any                           | elementwise |  0 |
mulhi                      | 2  | signed unsigned               | elementwise |  0 |
multiply                   | 2  | any                           | elementwise |  0 |
or                         | 2  | pred signed unsigned          | elementwise |  0 |
power                      | 2  | signed unsigned float complex | elementwise |  4 |
remainder                  | 2  | signed unsigned float         | elementwise |  0 |
shift-left                 | 2  | signed unsigned               | elementwise |  0 |
shift-right-arithmetic     | 2  | signed unsigned               | elementwise |  0 |
shift-right-logical        | 2  | signed unsigned               | elementwise |  0 |
subtract                   | 2  | signed unsigned float complex | elementwise |  0 |
xor                        | 2  | pred signed unsigned          | elementwise |  0 |
# ternary
clamp                      | 3  | any                           | elementwise |  0 |
select                     | 3  | any                           | elementwise |  0 |
# shape
bitcast                    | 1  | any                           |             |  0 |
broadcast                  | 1  | any                           |             |  0 | dimensions
concatenate                | 0+ | any                           |             |  0 | dimensions!
copy                       | 1  | any                           | elementwise |  0 |
dynamic-reshape            | 1+ | any                           |             |  0 |
dynamic-slice              | 1+ | any                           |             |  0 | dynamic_slice_sizes!
dynamic-update-slice       | 2+ | any                           |             |  0 |
gather                     | 2  | any                           |             |  0 |
    offset_dims! collapsed_slice_dims! start_index_map! index_vector_dim! slice_sizes! operand_batching_dims
    start_indices_batching_dims indices_are_sorted
get-dimension-size         | 1  | any                           |             |  0 | dimensions!
iota                       | 0  | signed unsigned float complex |             |  0 | iota_dimension!
pad                        | 2  | any                           |             |  0 | padding!
reshape                    | 1  | any                           |             |  0 | inferred_dimension
reverse                    | 1  | any                           |             |  0 | dimensions!
scatter                    | 3+ | any                           |             |  0 |
    update_window_dims! inserted_window_dims! scatter_dims_to_operand_dims! index_vector_dim! to_apply!
    input_batching_dims scatter_indices_batching_dims indices_are_sorted unique_indices
set-dimension-size         | 2  | any                           |             |  0 | dimensions!
slice                      | 1  | any                           |             |  0 | slice!
transpose                  | 1  | any                           |             |  0 | dimensions!
# region
map                        | 0+ | any                           |             |  0 | to_apply! dimensions
reduce                     | 2+ | any                           |             |  0 | dimensions! to_apply!
reduce-window              | 2+ | any                           |             |  0 | to_apply! window
scan                       | 0+ | any                           |             |  0 |
    dimensions! to_apply! num_carries! is_reverse is_associative
select-and-scatter         | 3  | any                           |             |  0 | select! scatter! window
sort                       | 1+ | any                           |             |  0 | dimensions! to_apply! is_stable
topk                       | 1  | any                           |             |  0 | k! largest is_stable
# linear algebra
batch-norm-grad            | 5  | float                         |             | 20 | epsilon! feature_index!
batch-norm-inference       | 5  | float                         |             | 20 | epsilon! feature_index!
batch-norm-training        | 3  | float                         |             | 20 | epsilon! feature_index!
cholesky                   | 1  | float complex                 |             | 20 | lower
convolution                | 2+ | signed unsigned float complex |             |  1 |
    dim_labels! window feature_group_count batch_group_count operand_precision convolution_kind
    sparsity_config algorithm
dot                        | 2+ | any                           |             |  1 |
    lhs_contracting_dims rhs_contracting_dims lhs_batch_dims rhs_batch_dims operand_precision algorithm
fft                        | 1  | complex f32 f64               |             | 20 | fft_type! fft_length!
ragged-dot                 | 3  | any                           |             |  1 |
    lhs_ragged_dims rhs_group_dims lhs_contracting_dims rhs_contracting_dims lhs_batch_dims rhs_batch_dims
    operand_precision algorithm
scaled-dot                 | 4  | float                         |             |  1 |
    lhs_contracting_dims rhs_contracting_dims lhs_batch_dims rhs_batch_dims operand_precision algorithm
triangular-solve           | 2  | float complex                 |             | 20 |
    left_side lower unit_diagonal transpose_a
# control
add-dependency             | 2  | any                           |             |  0 |
after-all                  | 0+ | any                           |             |  0 |
call                       | 0+ | any                           |             |  0 |
    to_apply! is_composite output_to_operand_aliasing
conditional                | 1+ | any                           |             |  0 |
    branch_computations true_computation false_computation
constant                   | 0  | any                           |             |  0 |
custom-call                | 0+ | any                           |             |  0 |
    custom_call_target! window feature_group_count batch_group_count operand_precision
    output_to_operand_aliasing dim_labels padding_type literal to_apply called_computations
    operand_layout_constraints custom_call_has_side_effect schedule api_version
domain                     | 1  | any                           |             |  0 | domain!
fusion                     | 0+ | any                           |             |  0 |
    calls! kind! output_to_operand_aliasing
get-tuple-element          | 1  | any                           |             |  0 | index!
opt-barrier                | 1  | any                           |             |  0 |
parameter                  | 0  | any                           |             |  0 |
tuple                      | 0+ | any                           |             |  0 |
while                      | 1  | any                           |             |  0 | condition! body!
# random numbers
rng                        | 0+ | any                           |             |  0 | distribution!
rng-bit-generator          | 1  | signed unsigned               |             |  0 | algorithm!
rng-get-and-update-state   | 0  | any                           |             |  0 | delta!
# asynchronous
async-start                | 0+ | any                           |             |  0 |
    calls! async_execution_thread output_to_operand_aliasing
async-update               | 1  | any                           |             |  0 |
    calls async_execution_thread output_to_operand_aliasing
async-done                 | 1  | any                           |             |  0 | calls async_execution_thread
copy-start                 | 1  | any                           |             |  0 | cross_program_prefetch_index
copy-done                  | 1  | any                           |             |  0 |
# collective
all-gather                 | 0+ | any                           |             |  0 |
    dimensions! replica_groups channel_id constrain_layout use_global_device_ids
all-gather-start           | 0+ | any                           |             |  0 |
    dimensions! replica_groups channel_id constrain_layout use_global_device_ids
all-gather-done            | 1  | any                           |             |  0 |
all-reduce                 | 0+ | any                           |             |  0 |
    to_apply! replica_groups channel_id constrain_layout use_global_device_ids mode
all-reduce-start           | 0+ | any                           |             |  0 |
    to_apply! replica_groups channel_id constrain_layout use_global_device_ids mode
all-reduce-done            | 1  | any                           |             |  0 |
all-to-all                 | 0+ | any                           |             |  0 |
    dimensions replica_groups channel_id constrain_layout
collective-broadcast       | 0+ | any                           |             |  0 | replica_groups channel_id
collective-permute         | 0+ | any                           |             |  0 |
    source_target_pairs! channel_id slice_sizes
collective-permute-start   | 0+ | any                           |             |  0 |
    source_target_pairs! channel_id slice_sizes
collective-permute-done    | 1  | any                           |             |  0 |
ragged-all-to-all          | 0+ | any                           |             |  0 |
    dimensions replica_groups channel_id
reduce-scatter             | 0+ | any                           |             |  0 |
    to_apply! dimensions! replica_groups channel_id constrain_layout use_global_device_ids mode
partition-id               | 0  | any                           |             |  0 |
replica-id                 | 0  | any                           |             |  0 |
# input and output
infeed                     | 1  | any                           |             |  0 | infeed_config
outfeed                    | 2  | any                           |             |  0 | outfeed_config outfeed_shape
send                       | 2  | any                           |             |  0 | channel_id is_host_transfer
send-done                  | 1  | any                           |             |  0 | channel_id is_host_transfer
recv                       | 1  | any                           |             |  0 | channel_id is_host_transfer
recv-done                  | 1  | any                           |             |  0 | channel_id is_host_transfer
"""
"""Opcode, number of operands (+: or more), dtypes, whether elementwise, bound in ulp, attributes (!: required)."""
